import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseTagList } from '../../src/protocol/entity-tag.ts';
import { createEventParser } from '../../src/protocol/event-parser.ts';
import { parseIdempotencyKey } from '../../src/protocol/idempotency-key.ts';
import { parseJson } from '../../src/protocol/json.ts';
import { applyMergePatch } from '../../src/protocol/merge-patch.ts';
import { parsePrefer } from '../../src/protocol/prefer.ts';
import { parseRetryAfter, parseRetryAfterMs } from '../../src/protocol/retry-after.ts';
import { codePoints, toStorableText } from '../../src/protocol/text.ts';
import { parseTraceparent } from '../../src/protocol/trace-context.ts';

/** For eight times the input: linear time takes 8, quadratic 64. */
const allowedFactor = 24;
/** Milliseconds that 128 KiB may always take: what is quadratic in them needs hundreds, and less is drowned in garbage collection. */
const alwaysAllowedMs = 30;

test('each parser takes time linear in the length of its input', () => {
  const bytes = (text: string) => new TextEncoder().encode(text);
  const cases: [title: string, piece: string, run: (text: string) => unknown][] = [
    ['key of blanks', ' ', (text) => parseIdempotencyKey([text])],
    ['key of blanks and a letter', ' \t', (text) => parseIdempotencyKey([`a${text}a`])],
    ['tags: commas', ',', (text) => parseTagList([text])],
    ['tags: commas and blanks', ', \t', (text) => parseTagList([`${text}"x"`])],
    ['tags: empty tags', '"",', (text) => parseTagList([text])],
    ['tags: one long tag', 'x', (text) => parseTagList([`"${text}`])],
    ['prefer: commas', ',', (text) => parsePrefer([text])],
    ['prefer: quotes', '"\\"', (text) => parsePrefer([text])],
    ['prefer: blanks', ' ', (text) => parsePrefer([`wait${text}=${text}5${text}x`])],
    ['prefer: semicolons', ';wait=1', (text) => parsePrefer([text])],
    ['prefer: digits', '9', (text) => parsePrefer([`wait=${text}`])],
    [
      'trace: a later version',
      '-0',
      (text) => parseTraceparent([`cc-${'1'.repeat(32)}-${'1'.repeat(16)}-01${text}\n`]),
    ],
    ['retry-after: digits', '9', (text) => parseRetryAfter(`${text}x`, 0)],
    ['retry-after-ms: digits', '9', (text) => parseRetryAfterMs(`${text}.`)],
    ['JSON: brackets', '[', (text) => parseJson(bytes(text))],
    ['JSON: escaped quotes', '\\"', (text) => parseJson(bytes(`"${text}`))],
    ['JSON: backslashes', '\\', (text) => parseJson(bytes(`"${text}`))],
    ['JSON: backslashes outside strings', '\\\\""', (text) => parseJson(bytes(text))],
    ['JSON: blanks', ' ', (text) => parseJson(bytes(text))],
    ['JSON: digits', '1', (text) => parseJson(bytes(text))],
    ['JSON: a number that ends badly', '1', (text) => parseJson(bytes(`${text}e`))],
    ['JSON: members', '"a":0,', (text) => parseJson(bytes(`{${text}"a":0}`))],
    ['merge patch: members of arrays', '0,', (text) => applyMergePatch({}, JSON.parse(`{"a":[${text}0]}`))],
    ['events: one long line', 'x', (text) => createEventParser({ maxEventChars: 1e9 }).push(bytes(text))],
    ['events: blank lines', '\n', (text) => createEventParser().push(bytes(text))],
    ['events: a long line in small chunks', 'x', (text) => pushInPieces(bytes(text), 2)],
    ['code points', '\ud83d', (text) => codePoints(text)],
    ['storable text', '\ud83d\0', (text) => toStorableText(text)],
  ];
  for (const [title, piece, run] of cases) {
    const small = piece.repeat(Math.ceil(16_384 / piece.length));
    const large = small.repeat(8);
    let measured = '';
    // One round within the limit is proof; only a parser that is not linear, or a very busy machine, fails them all.
    const isLinear = Array.from({ length: 10 }).some(() => {
      const smallMs = Math.min(cpuMs(run, small), cpuMs(run, small), cpuMs(run, small));
      const largeMs = cpuMs(run, large);
      measured = `${smallMs.toFixed(3)} ms, eight times the input: ${largeMs.toFixed(3)} ms`;
      return largeMs <= Math.max(smallMs * allowedFactor, alwaysAllowedMs);
    });
    assert.ok(isLinear, `${title}: ${measured}`);
  }
});

function pushInPieces(bytes: Uint8Array, size: number): void {
  const parser = createEventParser({ maxEventChars: 1e9 });
  for (let at = 0; at < bytes.length; at += size) parser.push(bytes.subarray(at, at + size));
}

/** The processor time of one run in milliseconds: what else the machine does is not in it. */
function cpuMs(run: (text: string) => unknown, text: string): number {
  const start = process.cpuUsage();
  run(text);
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1_000;
}
