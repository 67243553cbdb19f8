import { test } from 'node:test';
import { nginx, startNginx } from '../helpers/nginx.ts';
import { checkResentAfterKill, checkResentWhileRunning, type StartProxy } from '../helpers/resend.ts';

const skip = nginx === undefined ? 'no nginx' : false;

/** Sends everything again that was not answered in time, POSTs too. */
const startProxy: StartProxy = (t, backends) =>
  startNginx(t, backends, {
    location: 'proxy_next_upstream error timeout http_502 http_504 non_idempotent; proxy_read_timeout 1s;',
  });

test('nginx sends a POST to the second process while the first still runs it: one order', { skip }, (t) =>
  checkResentWhileRunning(t, startProxy),
);

test('nginx sends a POST of a process that was killed to the other one: one order', { skip }, (t) =>
  checkResentAfterKill(t, startProxy),
);
