import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createDoc } from '../helpers/docs.ts';
import { createJob, ended, ledgerOf, openStream, topUp } from '../helpers/jobs.ts';
import { openPaidStage } from '../helpers/paid-stage.ts';
import { startProcess } from '../helpers/server.ts';
import { testSql, until } from '../helpers/sql.ts';

test('SIGTERM hands running jobs to another process at once, not after a lease', async (t) => {
  const { stub, env } = await openPaidStage(t, 60_000);
  const long = { ...env, JOB_LEASE_MS: '60000' };
  const front = await startProcess(t, { ...long, WORKERS: '0' });
  await topUp(front, 1_000_000);
  const worker = await startProcess(t, { ...long, WORKERS: '4' });
  const id = await createJob(front, 'k', 'x');
  const stream = await openStream(front, id);
  await stream.until('delta');
  await startProcess(t, { ...long, WORKERS: '4' });
  const startedMs = performance.now();
  assert.equal(await worker.end('SIGTERM'), 0);
  await stream.until('reset');
  const ms = performance.now() - startedMs;
  t.diagnostic(`the next attempt began ${ms.toFixed(0)} ms after SIGTERM`);
  assert.ok(ms < 5_000);
  assert.equal((await front.call(`PUT /v1/jobs/${id}/cancellation`)).json.status, 'cancelled');
  await stub.until((stats) => stats.active === 0);
  assert.equal(stub.stats().calls, 2);
});

test('a job whose workers keep dying is dead after its tries, and its hold is released', async (t) => {
  const { env, stub } = await openPaidStage(t, 60_000);
  const front = await startProcess(t, { ...env, WORKERS: '0', JOB_MAX_ATTEMPTS: '1' });
  await topUp(front, 1_000_000);
  const worker = await startProcess(t, { ...env, WORKERS: '1' });
  const id = await createJob(front, 'k', 'x');
  await stub.until((stats) => stats.active === 1);
  await worker.end('SIGKILL');
  await startProcess(t, { ...env, WORKERS: '1' });
  const job = await ended(front, id);
  assert.deepEqual([job.status, job.attempts, job.usage.unknown_attempts, job.error.code], ['dead', 1, 1, 'internal']);
  assert.equal((await ledgerOf(front)).held_micros, 0);
});

test('a server is killed in the middle of a rewrite: the retry runs after the lease, and only it is paid', async (t) => {
  const { env, stub, databaseUrl } = await openPaidStage(t, 60_000);
  const victim = await startProcess(t, { ...env, WORKERS: '0' });
  const other = await startProcess(t, { ...env, WORKERS: '0' });
  // Enough for one call and no more: what the dead one holds must come back.
  await topUp(other, 11_000);
  const tag = await createDoc(other, 'd');
  const request = { key: 'k', body: { instruction: 'x' }, headers: { 'if-match': tag } };
  const lost = victim.call('POST /v1/docs/d/rewrite', request).then(
    () => 'answered',
    () => 'no answer',
  );
  await stub.until((stats) => stats.active === 1);
  await victim.end('SIGKILL');
  assert.equal(await lost, 'no answer');
  const told = await other.call('POST /v1/docs/d/rewrite', request);
  assert.deepEqual([told.status, told.json.code], [409, 'request_in_progress']);
  stub.script(['slow:50']);
  let answer = told;
  await until(async () => {
    answer = await other.call('POST /v1/docs/d/rewrite', request);
    return answer.status !== 409;
  });
  assert.deepEqual([answer.status, answer.json.version], [200, 2]);
  const { items, held_micros } = await ledgerOf(other);
  assert.equal(held_micros, 0);
  assert.equal(items.filter((item) => item.kind === 'charge').length, 1);
  const [open] = await testSql(t, databaseUrl)`select count(*)::int as n from holds`;
  assert.equal(open?.n, 0);
});
