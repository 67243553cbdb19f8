import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { createSimulatedProvider } from '../../src/llm/simulated.ts';
import { parseId } from '../../src/protocol/uuid.ts';
import { appendEvents, type ClaimedJob, claimJobs, reapOnce, renewLeases } from '../../src/resources/jobs/claims.ts';
import { eventRow } from '../../src/resources/jobs/event-data.ts';
import { cancelChannel } from '../../src/resources/jobs/signals.ts';
import { lockJob } from '../../src/resources/jobs/transitions.ts';
import { createJob } from '../helpers/jobs.ts';
import { startServer } from '../helpers/server.ts';
import { holdTransaction, testSql, until } from '../helpers/sql.ts';

const leaseMs = 60_000;
const delta = (seq: number, text = 'x') => eventRow(seq, { event: 'delta', text });

/** A server without workers, on whose jobs the test plays the worker. */
async function stage(t: TestContext, jobs = 1) {
  const server = await startServer(t, { seedCredits: true, env: { WORKERS: '0' } });
  const ids: string[] = [];
  for (let i = 0; i < jobs; i += 1) ids.push(await createJob(server, `k${i}`, 'x'));
  return { ...server, ids, sql: testSql(t, server.databaseUrl) };
}

async function claimOne(server: Awaited<ReturnType<typeof stage>>): Promise<ClaimedJob> {
  const [job] = await claimJobs(server.db, leaseMs, 1);
  assert.ok(job);
  return job;
}

test('a job is claimed by one of many, and never one that a transaction holds or that is not due', async (t) => {
  const server = await stage(t, 6);
  const [, held, later] = server.ids.map((id) => parseId('job', id) as string);
  await server.sql`update jobs set run_at = now() + interval '1 hour' where id = ${later as string}`;
  await holdTransaction(
    t,
    server.databaseUrl,
    (sql) => sql`select 1 from jobs where id = ${held as string} for update`,
  );
  const claims = (await Promise.all(Array.from({ length: 8 }, () => claimJobs(server.db, leaseMs, 1)))).flat();
  assert.equal(claims.length, 4);
  assert.equal(new Set(claims.map((job) => job.id)).size, 4);
  assert.equal(new Set(claims.map((job) => job.fencingToken)).size, 4);
});

test('a worker whose job has a new owner writes nothing, even where its numbers would fit', async (t) => {
  const server = await stage(t);
  const job = await claimOne(server);
  assert.equal(await appendEvents(server.db, job, [delta(3)], 1), true);
  await server.sql`update jobs set fencing_token = ${randomUUID()}`;
  assert.equal(await appendEvents(server.db, job, [delta(4)], 1), false);
  assert.equal(await appendEvents(server.db, job, [delta(3)], 1), false, 'nor does it take an old batch for its own');
  const owner = { fencingToken: job.fencingToken };
  assert.equal(await server.db.transaction((tx) => lockJob(tx.sql, job.tenant, job.id, owner)), undefined);
  assert.deepEqual(await renewLeases(server.db, leaseMs, [job]), new Set());
  const [events] = await server.sql`select count(*)::int as n from job_events`;
  assert.equal(events?.n, 3);
});

test('a batch whose answer was lost is known by its numbers when it comes again', async (t) => {
  const server = await stage(t);
  const job = await claimOne(server);
  const batch = [delta(3, 'a'), delta(4, 'b')];
  assert.equal(await appendEvents(server.db, job, batch, 2), true);
  assert.equal(await appendEvents(server.db, job, batch, 2), true);
  assert.equal(await appendEvents(server.db, job, [delta(6)], 1), false, 'a gap is never written');
  const rows = await server.sql`select seq, data from job_events where event = 'delta' order by seq`;
  assert.deepEqual(
    rows.map((row) => [row.seq, row.data]),
    batch.map(({ seq, data }) => [seq, data]),
  );
  const [counted] = await server.sql`select attempt_tokens, last_seq from jobs`;
  assert.deepEqual({ ...counted }, { attempt_tokens: 2, last_seq: 4 });
});

test('a lease is renewed, also while somebody writes the row, and only one that has run out is taken away', async (t) => {
  const server = await stage(t);
  const [job] = await claimJobs(server.db, 100, 1);
  assert.ok(job);
  assert.deepEqual(await renewLeases(server.db, leaseMs, [job]), new Set([job.fencingToken]));
  const held = await holdTransaction(t, server.databaseUrl, (sql) => sql`select 1 from jobs for update`);
  assert.deepEqual(await renewLeases(server.db, leaseMs, [job]), new Set([job.fencingToken]));
  await held.release();
  assert.deepEqual(await reapOnce(server.db), { requeued: 0, dead: 0 });
  await server.sql`update jobs set lease_until = now() - interval '1 second'`;
  assert.deepEqual(await reapOnce(server.db), { requeued: 1, dead: 0 });
  const [row] = await server.sql`select status, unknown_attempts, attempts, fencing_token from jobs`;
  assert.deepEqual({ ...row }, { status: 'queued', unknown_attempts: 1, attempts: 1, fencing_token: null });
  const again = await claimOne(server);
  assert.notEqual(again.fencingToken, job.fencingToken);
});

test('a cancellation tells the process that runs the job at once', async (t) => {
  const server = await stage(t);
  const told: string[] = [];
  await server.sql.listen(cancelChannel, (payload) => void told.push(payload));
  const job = await claimOne(server);
  await server.call(`PUT /v1/jobs/${server.ids[0]}/cancellation`);
  await until(() => told.length > 0);
  assert.deepEqual(told, [job.id.replaceAll('-', '')]);
});

test('a word to the workers of this process ends its call, whoever the others are', async (t) => {
  const model = createSimulatedProvider({ latencyMs: 60_000, tokens: 10 });
  const server = await startServer(t, { seedCredits: true, provider: model });
  const id = await createJob(server, 'k', '[[stall]]');
  const other = await createJob(server, 'k2', '[[stall]]');
  await until(() => model.stats().active === 2);
  const sql = testSql(t, server.databaseUrl);
  await sql.notify(cancelChannel, parseId('job', id) as string);
  await until(() => model.stats().active === 1);
  assert.equal(server.jobs.runningCount(), 1);
  await server.call(`PUT /v1/jobs/${other}/cancellation`);
  await server.call(`PUT /v1/jobs/${id}/cancellation`);
});
