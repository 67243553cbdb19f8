import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatIdempotencyKey, parseIdempotencyKey } from '../../src/protocol/idempotency-key.ts';

test('a request without an Idempotency-Key line has no key', () => {
  assert.deepEqual(parseIdempotencyKey([]), { kind: 'absent' });
});

test('a bare key, a quoted key and blanks around either are the same key', () => {
  for (const line of ['k-1', '"k-1"', ' k-1', 'k-1\t', '\t "k-1" ']) {
    assert.deepEqual(parseIdempotencyKey([line]), { kind: 'key', key: 'k-1' }, JSON.stringify(line));
  }
});

test('every visible ASCII character but the quote may be in a key, and case counts', () => {
  const visible = Array.from({ length: 0x7f - 0x21 }, (_, i) => String.fromCharCode(0x21 + i)).filter((c) => c !== '"');
  for (const key of [
    ...visible,
    visible.join(''),
    'stainless-node-retry-0f8fad5b-d9cb-469f-a165-70867728950e',
    'auto_0f8fad5b-d9cb-469f-a165-70867728950e',
    'q83vASNFZ4mrze8BI0VniQ+/',
    "it's;a=1,b",
    'K',
    'k',
  ]) {
    assert.deepEqual(parseIdempotencyKey([key]), { kind: 'key', key });
  }
});

test('a key may have 255 characters, the quotes not counted, and no more', () => {
  const longest = 'k'.repeat(255);
  assert.deepEqual(parseIdempotencyKey([longest]), { kind: 'key', key: longest });
  assert.deepEqual(parseIdempotencyKey([`"${longest}"`]), { kind: 'key', key: longest });
  assert.equal(parseIdempotencyKey([`${longest}k`]).kind, 'invalid');
  assert.equal(parseIdempotencyKey([`"${longest}k"`]).kind, 'invalid');
});

test('a malformed Idempotency-Key is refused with a sentence', () => {
  const cases: [title: string, lines: string[]][] = [
    ['two lines', ['a', 'b']],
    ['two lines that agree', ['a', 'a']],
    ['an empty value', ['']],
    ['blanks only', [' \t ']],
    ['empty quotes', ['""']],
    ['one quote', ['"']],
    ['unterminated', ['"k']],
    ['closed only', ['k"']],
    ['a quote inside', ['a"b']],
    ['a quote inside quotes', ['"a"b"']],
    ['three quotes', ['"""']],
    ['an escaped quote', ['"a\\"b"']],
    ['a backslash inside quotes', ['"a\\b"']],
    ['a parameter', ['"k";a=1']],
    ['a quoted parameter', ['"k";a="1"']],
    ['a blank inside', ['a b']],
    ['a blank inside quotes', ['"a b"']],
    ['a blank at the edge inside quotes', ['" k"']],
    ['two lines joined by a proxy', ['a, b']],
    ['a tab inside', ['a\tb']],
    ['a control character', ['a\u0001']],
    ['NUL', ['\u0000']],
    ['DEL', ['a\u007f']],
    ['a no-break space at the edge', ['\u00a0k']],
    ['UTF-8 read as latin1', ['Ã©']],
    ['beyond latin1', ['漢']],
  ];
  for (const [title, lines] of cases) {
    const parsed = parseIdempotencyKey(lines);
    assert.equal(parsed.kind, 'invalid', title);
    assert.match(parsed.kind === 'invalid' ? parsed.reason : '', /^[A-Z].*\.$/, title);
  }
});

test('a key is sent bare, and what no server may be sent is refused before it is sent', () => {
  assert.equal(formatIdempotencyKey('a\\b'), 'a\\b');
  for (const key of ['', 'a b', '"k"', 'é', 'k'.repeat(256), 'a\r\nX-Evil: 1']) {
    assert.throws(() => formatIdempotencyKey(key), RangeError, JSON.stringify(key));
  }
});
