import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type LlmStub, startLlmStub } from '../../scripts/llm-stub/server.ts';
import { atEnd } from '../helpers/cleanup.ts';
import { createDoc } from '../helpers/docs.ts';
import { createJob, ended, ledgerOf, openStream, textOf, topUp } from '../helpers/jobs.ts';
import { freshDatabase, startProcess } from '../helpers/server.ts';
import { testSql, until } from '../helpers/sql.ts';

type Context = Parameters<typeof startProcess>[0];

const leaseMs = 1_000;
/** What an answer takes. */
const workMs = 500;
/** The first call of each job falls silent in the middle and stays so; the next one answers. */
const stuckAtFirst = '[[stall-after:20 times=1]]';

/** A database, a provider that counts, and the variables by which processes share them. */
async function stage(t: Context, latencyMs: number) {
  const stub: LlmStub = await startLlmStub({ latencyMs, tokens: 40 });
  atEnd(t, stub.close);
  const databaseUrl = await freshDatabase(t);
  const env = {
    DATABASE_URL: databaseUrl,
    LLM_BASE_URL: stub.url,
    JOB_LEASE_MS: String(leaseMs),
    IDEMPOTENCY_LEASE_MS: String(leaseMs),
    DB_POOL_MAX: '5',
  };
  return { stub, databaseUrl, env };
}

test('38: a worker is killed in the middle, another takes over after the lease, and the stream tells of it and ends', async (t) => {
  const { stub, env } = await stage(t, workMs);
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
  const { stub, env, databaseUrl } = await stage(t, workMs);
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

test('SIGTERM hands running jobs to another process at once, not after a lease', async (t) => {
  const { stub, env } = await stage(t, 60_000);
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
  const { env, stub } = await stage(t, 60_000);
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
  const { env, stub, databaseUrl } = await stage(t, 60_000);
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
