import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { freshDatabase, startProcess, startServer } from '../helpers/server.ts';

const job = { kind: 'generate', prompt: 'x' };
const free = { WORKERS: '0', LLM_PRICE_MICROS_PER_TOKEN: '0' };

test('two processes under one rate limit admit exactly the budget, and another tenant has its own', async (t) => {
  const databaseUrl = await freshDatabase(t);
  // One a minute comes back: less than one while this runs.
  const env = { ...free, DATABASE_URL: databaseUrl, RATE_LIMIT_RPM: '1', RATE_LIMIT_BURST: '25' };
  const [one, other] = await Promise.all([startProcess(t, env), startProcess(t, env)]);
  const answers = await Promise.all(
    Array.from({ length: 80 }, (_, n) =>
      (n % 2 === 0 ? one : other).call('POST /v1/jobs', { key: `budget-key-${n}`, body: job }),
    ),
  );
  const count = (status: number) => answers.filter((answer) => answer.status === status).length;
  assert.deepEqual([count(202), count(429)], [25, 55]);
  for (const { status, headers } of answers) {
    if (status !== 429) continue;
    const waitMs = Number(headers.get('retry-after-ms'));
    assert.ok(waitMs > 0 && waitMs <= 60_000, String(waitMs));
    assert.equal(Number(headers.get('retry-after')), Math.ceil(waitMs / 1_000));
  }
  // What has been admitted is replayed without a token.
  const admitted = answers.findIndex((answer) => answer.status === 202);
  const replay = await other.call('POST /v1/jobs', { key: `budget-key-${admitted}`, body: job });
  assert.deepEqual([replay.status, replay.headers.get('idempotent-replayed')], [202, 'true']);
  assert.equal((await one.call('POST /v1/jobs', { tenant: 'globex', key: 'their-own-1', body: job })).status, 202);
});

test('who waits for as long as a 429 says is admitted, and who comes earlier is not', async (t) => {
  const server = await startServer(t, { env: { ...free, RATE_LIMIT_RPM: '60', RATE_LIMIT_BURST: '1' } });
  let n = 0;
  const send = () => server.call('POST /v1/jobs', { key: `patient-key-${n++}`, body: job });
  assert.equal((await send()).status, 202);
  const early = await send();
  assert.equal(early.status, 429);
  const startedMs = performance.now();
  const waitMs = Number(early.headers.get('retry-after-ms'));
  assert.ok(waitMs > 0 && waitMs <= 1_000, String(waitMs));
  await sleep(waitMs / 2);
  const earlier = await send();
  // A stalled machine may have slept through the whole wait.
  if (performance.now() - startedMs < waitMs - 50) assert.equal(earlier.status, 429);
  await sleep(Number(earlier.headers.get('retry-after-ms') ?? 0) + 10);
  assert.equal((await send()).status, 202);
});
