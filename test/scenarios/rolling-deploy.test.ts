import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '../../src/client/index.ts';
import { startFaultProxy } from '../helpers/fault-proxy.ts';
import { ledgerOf, topUp } from '../helpers/jobs.ts';
import { freshDatabase, startProcess, testToken } from '../helpers/server.ts';
import { testSql, until } from '../helpers/sql.ts';

/** Milliseconds: much longer than anything here may take. */
const leaseMs = 20_000;
const clients = 6;

test('a rolling deploy under load: no client that retries sees an error, and nobody waits for a lease', {
  timeout: 120_000,
}, async (t) => {
  const databaseUrl = await freshDatabase(t);
  const env = {
    DATABASE_URL: databaseUrl,
    IDEMPOTENCY_LEASE_MS: String(leaseMs),
    JOB_LEASE_MS: String(leaseMs),
    LLM_SIM_LATENCY_MS: '400',
    SHUTDOWN_GRACE_MS: '5000',
  };
  const start = () => startProcess(t, env);
  const fleet = await Promise.all([start(), start()]);
  // What stands before the fleet and is told of each change.
  const doors = await Promise.all(fleet.map(({ url }) => startFaultProxy(t, url)));
  await topUp({ url: doors[0]?.url as string }, 50_000_000);

  const token = await testToken();
  let calls = 0;
  let slowestMs = 0;
  let isOver = false;
  const done = { orders: 0, rewrites: 0, jobs: [] as string[] };
  const work = async (n: number) => {
    const patience = { backOffMs: 50, maxBackOffMs: 500, attemptTimeoutMs: 15_000 };
    const client = createClient({ baseUrl: doors[n % 2]?.url as string, token, patience });
    const doc = await client.call('createDoc', { body: { title: 't', body: 'b' } });
    let tag = doc.body.etag;
    for (let i = 0; !isOver; i += 1) {
      const startedMs = performance.now();
      if (i % 3 === 0) {
        const params = { id: doc.body.id };
        const written = await client.call('rewriteDoc', { params, ifMatch: tag, body: { instruction: `${n} ${i}` } });
        tag = written.body.etag;
        done.rewrites += 1;
      } else if (i % 3 === 1) {
        const { body } = await client.call('createJob', {
          body: { kind: 'generate', prompt: `${n} ${i}`, max_tokens: 64 },
        });
        done.jobs.push(body.job_id);
      } else {
        await client.call('createOrder', { body: { cents: 1, item: `${n} ${i}` } });
        done.orders += 1;
      }
      calls += 1;
      slowestMs = Math.max(slowestMs, performance.now() - startedMs);
      await sleep(10);
    }
  };
  const running = Promise.all(Array.from({ length: clients }, (_, n) => work(n)));
  running.catch(() => {});

  // One by one: the successor is there first, and whoever stands before the fleet hears of it a moment late.
  const codes: (number | null)[] = [];
  for (const [i, old] of fleet.entries()) {
    const before = calls;
    await until(() => calls > before + clients);
    const successor = await start();
    const ended = old.end('SIGTERM');
    await sleep(200);
    doors[i]?.retarget(successor.url);
    codes.push(await ended);
  }
  const before = calls;
  await until(() => calls > before + clients);
  isOver = true;
  await running;

  assert.deepEqual(codes, [0, 0]);
  assert.ok(slowestMs < leaseMs / 2, `the slowest call took ${Math.round(slowestMs)} ms`);
  const sql = testSql(t, databaseUrl);
  const [{ orders }] = (await sql`select count(*)::int as orders from orders`) as [{ orders: number }];
  assert.equal(orders, done.orders);
  await until(async () => (await sql`select 1 from jobs where status in ('queued', 'running')`).length === 0);
  const jobs = await sql<{ status: string; ms: number }[]>`
    select status, (extract(epoch from ended_at - created_at) * 1000)::float8 as ms from jobs`;
  assert.deepEqual(
    jobs.filter(({ status }) => status !== 'succeeded'),
    [],
  );
  assert.equal(jobs.length, done.jobs.length);
  assert.ok(Math.max(...jobs.map(({ ms }) => ms)) < leaseMs, 'a job waited for a lease');
  const { items, held_micros } = await ledgerOf({ url: doors[0]?.url as string });
  assert.equal(held_micros, 0);
  assert.equal(items.filter(({ kind }) => kind === 'charge').length, done.jobs.length + done.rewrites);
  t.diagnostic(`${calls} calls, the slowest ${Math.round(slowestMs)} ms`);
});
