import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createJob, ledgerOf, openStream, textOf, topUp } from '../helpers/jobs.ts';
import { leaseMs, openPaidStage } from '../helpers/paid-stage.ts';
import { startProcess } from '../helpers/server.ts';
import { testSql } from '../helpers/sql.ts';

/** What an answer takes. */
const workMs = 500;
/** The first call of each job falls silent in the middle and stays so; the next one answers. */
const stuckAtFirst = '[[stall-after:20 times=1]]';

test('38: a worker is killed in the middle, another takes over after the lease, and the stream tells of it and ends', async (t) => {
  const { stub, env } = await openPaidStage(t, workMs);
  const front = await startProcess(t, { ...env, WORKERS: '0' });
  await topUp(front, 1_000_000);
  const worker = await startProcess(t, { ...env, WORKERS: '1' });
  const id = await createJob(front, 'k', stuckAtFirst);
  const stream = await openStream(front, id);
  const before = await stream.until('delta');
  await startProcess(t, { ...env, WORKERS: '1' });
  await worker.end('SIGKILL');
  const killedMs = performance.now();
  const events = await stream.rest();
  t.diagnostic(`from the kill to the end of the job: ${(performance.now() - killedMs).toFixed(0)} ms`);

  const names = events.map(({ event, data }) => (event === 'status' ? data.status : event));
  const reset = names.indexOf('reset');
  assert.ok(reset > names.indexOf('delta'), 'reset comes between the two attempts');
  assert.deepEqual(events[reset]?.data.attempt, 2);
  assert.deepEqual(
    names.filter((name) => name !== 'delta'),
    ['queued', 'running', 'queued', 'running', 'reset', 'done'],
  );
  assert.deepEqual(
    events.map((event) => event.id),
    events.map((_, i) => String(i + 1)),
  );
  assert.ok(events.some((event) => event.id === before.id));

  const { json: job } = await front.call(`GET /v1/jobs/${id}`);
  assert.deepEqual([job.status, job.attempts, job.usage.unknown_attempts], ['succeeded', 2, 1]);
  assert.equal(textOf(events), job.result);
  assert.equal(stub.stats().calls, 2);
  const { of, held_micros } = await ledgerOf(front);
  assert.deepEqual(
    of(id).map((item) => item.kind),
    ['charge', 'release', 'hold'],
  );
  assert.deepEqual([held_micros, of(id)[1]?.unknown_attempts], [0, 1]);
  const told = textOf(events.slice(0, reset)).match(/\S+/g)?.length ?? 0;
  assert.equal(job.usage.completion_tokens, 40 + told, 'what the dead worker had told of is paid, too');
});

test('a worker killed in the middle of 20 running jobs: all end within lease and work, one charge each, and P is the attempts recorded', async (t) => {
  const { stub, env, databaseUrl } = await openPaidStage(t, workMs);
  const front = await startProcess(t, { ...env, WORKERS: '0' });
  await topUp(front, 10_000_000);
  const worker = await startProcess(t, { ...env, WORKERS: '20' });
  const ids = await Promise.all(
    Array.from({ length: 20 }, (_, i) => createJob(front, `k${i}`, `${stuckAtFirst} ${i}`)),
  );
  const streams = await Promise.all(ids.map((id) => openStream(front, id)));
  await Promise.all(streams.map((stream) => stream.until('delta')));
  await startProcess(t, { ...env, WORKERS: '20' });
  await worker.end('SIGKILL');
  const killedMs = performance.now();
  const histories = await Promise.all(streams.map((stream) => stream.rest()));
  const tookMs = performance.now() - killedMs;
  t.diagnostic(`all ended ${tookMs.toFixed(0)} ms after the kill`);
  // Lease and work, and a margin for busy cores.
  assert.ok(tookMs < leaseMs + workMs + 4_000);

  let attempts = 0;
  const { of, held_micros } = await ledgerOf(front);
  for (const [i, id] of ids.entries()) {
    const { json: job } = await front.call(`GET /v1/jobs/${id}`);
    const events = histories[i] ?? [];
    attempts += job.attempts;
    assert.deepEqual([job.status, job.attempts, events.at(-1)?.event], ['succeeded', 2, 'done']);
    assert.equal(textOf(events), job.result);
    assert.equal(of(id).filter((item) => item.kind === 'charge').length, 1);
  }
  assert.equal(held_micros, 0);
  assert.equal(stub.stats().calls, attempts, 'P equals the attempts recorded');
  const [open] = await testSql(t, databaseUrl)`select count(*)::int as n from holds`;
  assert.equal(open?.n, 0);
});
