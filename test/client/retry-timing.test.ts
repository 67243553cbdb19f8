import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backOffMs, defaultPatience, type Finding, type NextTry, nextTry } from '../../src/client/retry-timing.ts';

const patience = { budgetMs: 60_000, attemptTimeoutMs: 10_000, backOffMs: 100, maxBackOffMs: 1_000 };
/** Sun, 06 Nov 1994 08:49:37 GMT */
const nowMs = 784_111_777_000;

type Case = {
  name: string;
  finding: Finding;
  attempts?: number;
  budgetLeftMs?: number;
  keyLeftMs?: number;
  random?: number;
  expected: NextTry;
};

const answered = (status: number, more: object = {}): Finding => ({ kind: 'answered', status, ...more });
const final: NextTry = { kind: 'stop', why: 'final' };
const wait = (ms: number): NextTry => ({ kind: 'wait', ms });

const cases: Case[] = [
  { name: 'no answer is tried again', finding: { kind: 'no_answer' }, expected: wait(50) },
  { name: 'the bound of the back-off doubles', finding: { kind: 'no_answer' }, attempts: 3, expected: wait(200) },
  { name: 'the bound of the back-off is capped', finding: { kind: 'no_answer' }, attempts: 30, expected: wait(500) },
  { name: 'full jitter begins at zero', finding: { kind: 'no_answer' }, attempts: 9, random: 0, expected: wait(0) },
  { name: '408 is tried again', finding: answered(408), expected: wait(50) },
  { name: '429 is tried again', finding: answered(429), expected: wait(50) },
  { name: '500 is tried again', finding: answered(500), expected: wait(50) },
  { name: '503 is tried again', finding: answered(503), expected: wait(50) },
  { name: '599 is tried again', finding: answered(599), expected: wait(50) },
  {
    name: '409 of a running twin is tried again',
    finding: answered(409, { code: 'request_in_progress' }),
    expected: wait(50),
  },
  { name: '409 of a reused key is final', finding: answered(409, { code: 'idempotency_key_reused' }), expected: final },
  { name: '409 without a code is final', finding: answered(409), expected: final },
  { name: '400 is final', finding: answered(400), expected: final },
  { name: '401 is final', finding: answered(401), expected: final },
  { name: '402 is final', finding: answered(402), expected: final },
  { name: '404 is final', finding: answered(404), expected: final },
  { name: '412 is final', finding: answered(412), expected: final },
  { name: '422 is final', finding: answered(422), expected: final },
  { name: 'a redirect is final', finding: answered(307), expected: final },
  {
    name: 'x-should-retry: false goes before a 503',
    finding: answered(503, { shouldRetry: 'false' }),
    expected: final,
  },
  {
    name: 'x-should-retry: true goes before a 400',
    finding: answered(400, { shouldRetry: 'true' }),
    expected: wait(50),
  },
  {
    name: 'an x-should-retry of another value counts for nothing',
    finding: answered(400, { shouldRetry: '1' }),
    expected: final,
  },
  {
    name: 'Retry-After in seconds is obeyed',
    finding: answered(429, { retryAfter: '7' }),
    random: 0,
    expected: wait(7_000),
  },
  { name: 'an asked wait is spread upwards only', finding: answered(429, { retryAfter: '7' }), expected: wait(7_350) },
  {
    name: 'retry-after-ms goes before Retry-After',
    finding: answered(503, { retryAfter: '7', retryAfterMs: '120' }),
    random: 0,
    expected: wait(120),
  },
  {
    name: 'an unreadable retry-after-ms leaves Retry-After',
    finding: answered(503, { retryAfter: '7', retryAfterMs: 'x' }),
    random: 0,
    expected: wait(7_000),
  },
  {
    name: 'an unreadable Retry-After leaves the back-off',
    finding: answered(503, { retryAfter: 'soon' }),
    expected: wait(50),
  },
  {
    name: 'a Retry-After date is read against the local clock',
    finding: answered(503, { retryAfter: 'Sun, 06 Nov 1994 08:49:40 GMT' }),
    random: 0,
    expected: wait(3_000),
  },
  {
    name: 'a Retry-After date is read against the clock of the server where it is told',
    finding: answered(503, { retryAfter: 'Sun, 06 Nov 1994 10:00:05 GMT', date: 'Sun, 06 Nov 1994 10:00:00 GMT' }),
    random: 0,
    expected: wait(5_000),
  },
  {
    name: 'a Retry-After date in the past is no wait',
    finding: answered(503, { retryAfter: 'Sun, 06 Nov 1994 08:00:00 GMT' }),
    expected: wait(0),
  },
  {
    name: 'a wait that would end after the budget is not begun',
    finding: answered(429, { retryAfter: '7' }),
    budgetLeftMs: 7_000,
    random: 0,
    expected: { kind: 'stop', why: 'budget' },
  },
  {
    name: 'a wait that ends within the budget is begun',
    finding: answered(429, { retryAfter: '7' }),
    budgetLeftMs: 7_001,
    random: 0,
    expected: wait(7_000),
  },
  {
    name: 'no time left is no try left',
    finding: { kind: 'no_answer' },
    budgetLeftMs: 0,
    random: 0,
    expected: { kind: 'stop', why: 'budget' },
  },
  {
    name: 'a wait that would outlive the key is not begun',
    finding: answered(503, { retryAfter: '7' }),
    keyLeftMs: 6_000,
    expected: { kind: 'stop', why: 'key_expired' },
  },
  {
    name: 'an expired key stops even a wait of nothing',
    finding: { kind: 'no_answer' },
    keyLeftMs: -1,
    random: 0,
    expected: { kind: 'stop', why: 'key_expired' },
  },
  {
    name: 'what is final stays final when time is up',
    finding: answered(422),
    budgetLeftMs: 0,
    keyLeftMs: 0,
    expected: final,
  },
];

for (const {
  name,
  finding,
  attempts = 1,
  budgetLeftMs = 60_000,
  keyLeftMs = Number.POSITIVE_INFINITY,
  random = 0.5,
  expected,
} of cases) {
  test(`retry timing: ${name}`, () => {
    const next = nextTry(finding, { attempts, budgetLeftMs, keyLeftMs }, patience, () => random, nowMs);
    assert.deepEqual(next, expected);
  });
}

test('a back-off stays below its bound and is spread over all of it', () => {
  const waits = Array.from({ length: 1_000 }, () => backOffMs(4, defaultPatience, Math.random));
  assert.deepEqual(
    waits.filter((ms) => ms < 0 || ms >= 2_000),
    [],
  );
  assert.equal(waits.some((ms) => ms < 400) && waits.some((ms) => ms > 1_600), true);
});
