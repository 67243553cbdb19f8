import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseHttpDate } from '../../src/protocol/http-date.ts';
import { formatRetryAfter, parseRetryAfter, parseRetryAfterMs } from '../../src/protocol/retry-after.ts';

test('a wait is written as whole seconds from 1 to 60, rounded up, and as milliseconds below a minute', () => {
  const cases: [waitMs: number, seconds: number, ms: number][] = [
    [-5, 1, 1],
    [0, 1, 1],
    [0.2, 1, 1],
    [250, 1, 250],
    [1_000, 1, 1_000],
    [1_000.4, 2, 1_001],
    [1_001, 2, 1_001],
    [15_000, 15, 15_000],
    [59_000, 59, 59_000],
    [59_998.5, 60, 59_999],
    [60_000, 60, 59_999],
    [3_600_000, 60, 59_999],
    [Number.POSITIVE_INFINITY, 60, 59_999],
  ];
  for (const [waitMs, seconds, ms] of cases) assert.deepEqual(formatRetryAfter(waitMs), { seconds, ms }, `${waitMs}`);
});

// RFC 9110's example, 1994-11-06T08:49:37Z.
const example = 784_111_777_000;

test('Retry-After is read as seconds or as one of the three forms of an HTTP date', () => {
  const now = example - 30_000;
  const cases: [value: string, waitMs: number][] = [
    ['0', 0],
    ['120', 120_000],
    [' 7\t', 7_000],
    ['007', 7_000],
    ['9'.repeat(400), 2_147_483_648_000],
    ['Sun, 06 Nov 1994 08:49:37 GMT', 30_000],
    ['Sunday, 06-Nov-94 08:49:37 GMT', 30_000],
    ['Sun Nov  6 08:49:37 1994', 30_000],
    ['Sun, 06 Nov 1994 08:49:07 GMT', 0],
    ['Sun, 06 Nov 1994 08:49:06 GMT', 0],
    ['Thu, 01 Jan 1970 00:00:00 GMT', 0],
  ];
  for (const [value, waitMs] of cases) assert.equal(parseRetryAfter(value, now), waitMs, value);
});

test('a Retry-After that is neither seconds nor a real date is ignored', () => {
  for (const value of [
    '',
    '-1',
    '+1',
    '1.5',
    '1e3',
    '0x10',
    '5 s',
    '1, 2',
    'soon',
    '1994-11-06T08:49:37Z',
    'Sun, 06 Nov 1994',
    'Sun, 06 Nov 1994 08:49:37',
    'Sun, 06 Nov 1994 08:49:37 UTC',
    'Sun, 06 Nov 1994 08:49:37 +0000',
    'Sun, 6 Nov 1994 08:49:37 GMT',
    'sun, 06 nov 1994 08:49:37 gmt',
    'Sun 06 Nov 1994 08:49:37 GMT',
    'Mon, 06 Nov 1994 08:49:37 GMT',
    'Sun, 06 Nov 1994 24:00:00 GMT',
    'Sun, 06 Nov 1994 08:60:37 GMT',
    'Sun, 06 Nov 1994 08:49:61 GMT',
    'Sun, 00 Nov 1994 08:49:37 GMT',
    'Wed, 30 Feb 1994 08:49:37 GMT',
    'Thu, 31 Nov 1994 08:49:37 GMT',
    'Wed, 29 Feb 1995 08:49:37 GMT',
    'Sun, 06-Nov-94 08:49:37 GMT',
    'Sunday, 06-Nov-1994 08:49:37 GMT',
    'on Sun, 06 Nov 1994 08:49:37 GMT',
    'on Sunday, 06-Nov-94 08:49:37 GMT',
    'on Sun Nov  6 08:49:37 1994',
    'Sunday, 06-Nov-94 08:49:37 GMT!',
    'Sun Nov 6 08:49:37 1994',
    'Sun Nov  6 08:49:37 1994 GMT',
  ]) {
    assert.equal(parseRetryAfter(value, 0), undefined, value);
  }
});

test('an HTTP date is read whole: leap day, leap second, years below 100, two-digit years', () => {
  const at2026 = Date.UTC(2026, 5, 1);
  const cases: [text: string, iso: string][] = [
    ['Thu, 29 Feb 2024 00:00:00 GMT', '2024-02-29T00:00:00.000Z'],
    ['Sat, 31 Dec 2016 23:59:60 GMT', '2017-01-01T00:00:00.000Z'],
    ['Fri Dec 31 23:59:59 1999', '1999-12-31T23:59:59.000Z'],
    ['Thu, 01 Jan 0099 00:00:00 GMT', '0099-01-01T00:00:00.000Z'],
    // A two-digit year may lie at most 50 years ahead.
    ['Wednesday, 01-Jan-76 00:00:00 GMT', '2076-01-01T00:00:00.000Z'],
    ['Saturday, 01-Jan-77 00:00:00 GMT', '1977-01-01T00:00:00.000Z'],
    ['Friday, 01-Jan-27 00:00:00 GMT', '2027-01-01T00:00:00.000Z'],
  ];
  for (const [text, iso] of cases) {
    const ms = parseHttpDate(text, at2026);
    assert.equal(ms === undefined ? ms : new Date(ms).toISOString(), iso, text);
  }
});

test('retry-after-ms is read as a plain non-negative number', () => {
  const cases: [value: string, ms: number | undefined][] = [
    ['0', 0],
    ['250', 250],
    [' 1500.5 ', 1500.5],
    ['9'.repeat(400), 2_147_483_648_000],
    ['', undefined],
    ['-1', undefined],
    ['1e3', undefined],
    ['.5', undefined],
    ['5ms', undefined],
    ['NaN', undefined],
    ['Infinity', undefined],
  ];
  for (const [value, ms] of cases) assert.equal(parseRetryAfterMs(value), ms, value);
});
