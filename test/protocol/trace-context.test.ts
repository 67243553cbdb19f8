import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatTraceparent, parseTraceparent } from '../../src/protocol/trace-context.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const parentId = '00f067aa0ba902b7';

test('a traceparent gives trace, parent and flags', () => {
  const cases: [title: string, header: string, flags: number][] = [
    ['sampled', `00-${traceId}-${parentId}-01`, 1],
    ['not sampled', `00-${traceId}-${parentId}-00`, 0],
    ['all flags', `00-${traceId}-${parentId}-ff`, 255],
    ['blanks around', ` 00-${traceId}-${parentId}-01\t`, 1],
    ['a later version', `cc-${traceId}-${parentId}-01`, 1],
    ['a later version with more fields', `cc-${traceId}-${parentId}-01-what-the-future-brings`, 1],
    ['a later version with an empty field', `cc-${traceId}-${parentId}-01-`, 1],
  ];
  for (const [title, header, flags] of cases) {
    assert.deepEqual(parseTraceparent([header]), { traceId, parentId, flags }, title);
  }
});

test('a malformed traceparent is no traceparent', () => {
  const cases: [title: string, lines: string[]][] = [
    ['no line', []],
    ['two lines', [`00-${traceId}-${parentId}-01`, `00-${traceId}-${parentId}-01`]],
    ['empty', ['']],
    ['version ff', [`ff-${traceId}-${parentId}-01`]],
    ['junk in front', [`x00-${traceId}-${parentId}-01`]],
    ['version of one digit', [`0-${traceId}-${parentId}-01`]],
    ['version in capitals', [`CC-${traceId}-${parentId}-01`]],
    ['an all-zero trace', [`00-${'0'.repeat(32)}-${parentId}-01`]],
    ['an all-zero parent', [`00-${traceId}-${'0'.repeat(16)}-01`]],
    ['a trace in capitals', [`00-${traceId.toUpperCase()}-${parentId}-01`]],
    ['a parent in capitals', [`00-${traceId}-${parentId.toUpperCase()}-01`]],
    ['flags in capitals', [`00-${traceId}-${parentId}-0A`]],
    ['a short trace', [`00-${traceId.slice(1)}-${parentId}-01`]],
    ['a long parent', [`00-${traceId}-${parentId}0-01`]],
    ['no flags', [`00-${traceId}-${parentId}`]],
    ['other separators', [`00_${traceId}_${parentId}_01`]],
    ['more fields in version 00', [`00-${traceId}-${parentId}-01-more`]],
    ['trailing dash in version 00', [`00-${traceId}-${parentId}-01-`]],
    ['junk behind a later version', [`cc-${traceId}-${parentId}-01.more`]],
    ['not hex', [`00-${'g'.repeat(32)}-${parentId}-01`]],
    ['a line break behind', [`00-${traceId}-${parentId}-01\n`]],
  ];
  for (const [title, lines] of cases) assert.equal(parseTraceparent(lines), undefined, title);
});

test('a traceparent is written in version 00 and with the flags that are defined', () => {
  assert.equal(formatTraceparent({ traceId, parentId, flags: 0 }), `00-${traceId}-${parentId}-00`);
  assert.equal(formatTraceparent({ traceId, parentId, flags: 255 }), `00-${traceId}-${parentId}-03`);
});
