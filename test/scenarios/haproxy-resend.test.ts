import { test } from 'node:test';
import { haproxy, startHaproxy } from '../helpers/haproxy.ts';
import { checkResentAfterKill, checkResentWhileRunning, type StartProxy } from '../helpers/resend.ts';

const skip = haproxy === undefined ? 'no haproxy' : false;

/** Sends everything again whose answer is missing or a 5xx, to another server. */
const startProxy: StartProxy = (t, backends) =>
  startHaproxy(t, backends, 1_000, '  retry-on all-retryable-errors\n  retries 3\n  option redispatch 1');

test('haproxy sends a POST to the second process while the first still runs it: one order', { skip }, (t) =>
  checkResentWhileRunning(t, startProxy),
);

test('haproxy sends a POST of a process that was killed to the other one: one order', { skip }, (t) =>
  checkResentAfterKill(t, startProxy),
);
