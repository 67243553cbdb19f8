import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseMediaType } from '../../src/http/media-type.ts';

test('a media type is told from its parameters, and UTF-8 from other charsets', () => {
  const cases: [value: string | undefined, essence: string | undefined, isUtf8?: boolean][] = [
    ['application/json', 'application/json', true],
    ['Application/JSON ; Charset="UTF-8"', 'application/json', true],
    ['application/json;charset=utf8', 'application/json', true],
    ['application/merge-patch+json; profile=x; charset=utf-8', 'application/merge-patch+json', true],
    ['application/json; charset=latin1', 'application/json', false],
    ['application/json; charset=', 'application/json', false],
    ['application/json; charset=utf-8; charset=utf-16', 'application/json', false],
    ['application/json;', 'application/json', true],
    [undefined, undefined],
    ['', undefined],
    ['json', undefined],
    ['application/', undefined],
    ['application/json, text/plain', undefined],
    ['a/b/c', undefined],
    [`application/json;${'x'.repeat(300)}`, undefined],
  ];
  for (const [value, essence, isUtf8] of cases) {
    const expected = essence === undefined ? undefined : { essence, isUtf8 };
    assert.deepEqual(parseMediaType(value), expected, value);
  }
});
