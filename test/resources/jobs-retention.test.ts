import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deleteTextsOnce } from '../../src/resources/jobs/retention.ts';
import { createJob, ended, ledgerOf, openStream } from '../helpers/jobs.ts';
import { startServer } from '../helpers/server.ts';
import { testSql } from '../helpers/sql.ts';

const dayMs = 86_400_000;

test('texts past their retention are gone, the job stays with its cost, and no tag says it is unchanged', async (t) => {
  const server = await startServer(t, { seedCredits: true });
  const old = await createJob(server, 'k1', 'a secret prompt');
  const young = await createJob(server, 'k2', 'x');
  const before = await ended(server, old);
  await ended(server, young);
  const sql = testSql(t, server.databaseUrl);
  await sql`update jobs set ended_at = ended_at - interval '25 hours' where prompt = 'a secret prompt'`;
  assert.deepEqual(await deleteTextsOnce(server.db, dayMs), { emptied: 1 });
  assert.deepEqual(await deleteTextsOnce(server.db, dayMs), { emptied: 0 });

  const after = await server.call(`GET /v1/jobs/${old}`, { headers: { 'if-none-match': before.etag } });
  assert.equal(after.status, 200);
  const { result, version, etag, ...rest } = before;
  assert.deepEqual(after.json, { ...rest, result: null, version: version + 1, etag: after.json.etag });
  assert.notEqual(after.json.etag, etag);
  assert.ok(result.length > 0);

  const events = await server.call(`GET /v1/jobs/${old}/events`);
  assert.deepEqual([events.status, events.json.code], [410, 'events_deleted']);
  const [left] = await sql`select (select count(*) from jobs where prompt like '%secret%')::int as prompts,
    (select count(distinct job_id) from job_events)::int as jobs`;
  assert.deepEqual({ ...left }, { prompts: 0, jobs: 1 });
  await (await openStream(server, young)).rest();
  assert.equal((await ledgerOf(server)).of(old).length, 3);
});

test('a reader that has seen everything is told to stop even when the events are deleted', async (t) => {
  const server = await startServer(t, { seedCredits: true });
  const id = await createJob(server, 'k', 'x');
  const events = await (await openStream(server, id)).rest();
  await testSql(t, server.databaseUrl)`update jobs set ended_at = ended_at - interval '25 hours'`;
  await deleteTextsOnce(server.db, dayMs);
  assert.equal((await server.call(`GET /v1/jobs/${id}/events?after=${events.length}`)).status, 204);
  assert.equal((await server.call(`GET /v1/jobs/${id}/events?after=${events.length + 1}`)).status, 400);
});

test('the sweep takes jobs that have ended only, a bounded batch at a time, the oldest first', async (t) => {
  const server = await startServer(t, { seedCredits: true, env: { WORKERS: '0' } });
  const ids: string[] = [];
  for (let i = 0; i < 4; i += 1) ids.push(await createJob(server, `k${i}`, `x${i}`));
  for (const id of ids.slice(0, 3)) await server.call(`PUT /v1/jobs/${id}/cancellation`);
  const sql = testSql(t, server.databaseUrl);
  await sql`update jobs set ended_at = ended_at - interval '30 hours' where status = 'cancelled'`;
  assert.deepEqual(await deleteTextsOnce(server.db, dayMs, 2), { emptied: 2 });
  const left = await sql`select prompt from jobs where texts_deleted_at is null order by prompt`;
  assert.deepEqual(
    left.map((row) => row.prompt),
    ['x2', 'x3'],
  );
  assert.deepEqual(await deleteTextsOnce(server.db, dayMs, 2), { emptied: 1 });
});
