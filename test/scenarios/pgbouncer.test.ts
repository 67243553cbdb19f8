import assert from 'node:assert/strict';
import { test } from 'node:test';
import postgres from 'postgres';
import { atEnd } from '../helpers/cleanup.ts';
import { startPrivateServer } from '../helpers/database.ts';
import { createDoc } from '../helpers/docs.ts';
import { createJob, ended, ledgerOf, openStream, textOf, topUp } from '../helpers/jobs.ts';
import { noPgBouncer, startPgBouncer } from '../helpers/pgbouncer.ts';
import { startProcess } from '../helpers/server.ts';
import { countOrders, testSql } from '../helpers/sql.ts';

test('two programs behind PgBouncer in transaction mode migrate, keep keys, tags, jobs and streams', {
  skip: noPgBouncer,
  timeout: 90_000,
}, async (t) => {
  const server = await startPrivateServer();
  atEnd(t, () => server.remove());
  const admin = postgres(server.url, { max: 1 });
  await admin`create database behind`;
  await admin.end();
  const direct = new URL(server.url);
  direct.pathname = '/behind';
  // Fewer sessions than the two programs have connections: what belongs to a session would be seen by somebody else.
  const bouncer = await startPgBouncer(server.url, 4);
  atEnd(t, () => bouncer.stop());
  const env = { DATABASE_URL: bouncer.through(direct.href), DB_PREPARE: 'false', LLM_SIM_LATENCY_MS: '300' };
  const [first, second] = await Promise.all([startProcess(t, env), startProcess(t, env)]);
  const sql = testSql(t, direct.href);

  const copies = await Promise.all(
    Array.from({ length: 60 }, (_, i) =>
      (i % 2 === 0 ? first : second).call('POST /v1/orders', { key: 'k', body: { cents: 1, item: 'one' } }),
    ),
  );
  assert.deepEqual(
    [...new Set(copies.map(({ status }) => status))].filter((status) => status !== 409),
    [201],
  );
  assert.equal(await countOrders(sql), 1);

  await topUp(first, 50_000_000);
  const tag = await createDoc(first, 'd_1');
  const edit = (cents: string) =>
    second.call('PUT /v1/docs/d_1', { headers: { 'if-match': tag }, body: { title: cents, body: 'b' } });
  const edits = await Promise.all(Array.from({ length: 10 }, (_, i) => edit(`t${i}`)));
  assert.equal(edits.filter(({ status }) => status === 200).length, 1);
  assert.equal(edits.filter(({ status }) => status === 412).length, 9);

  const id = await createJob(first, 'job', 'hello');
  const [here, there] = await Promise.all([openStream(first, id), openStream(second, id)]);
  const events = await here.rest();
  assert.equal(events.at(-1)?.event, 'done');
  assert.deepEqual(await there.rest(), events, 'whichever program runs it, both tell it by polling');
  assert.equal(textOf(events), (await ended(second, id)).result);
  assert.equal((await ledgerOf(first)).held_micros, 0);

  const locks = await sql`select 1 from pg_locks where locktype = 'advisory'`;
  assert.equal(locks.length, 0, 'no lock outlives its transaction');
  const listening = await sql`
    select 1 from pg_stat_activity where datname = current_database() and query ilike 'listen%'`;
  assert.equal(listening.length, 0, 'nobody listens on a session that is lent');
  assert.deepEqual(await Promise.all([first.end('SIGTERM'), second.end('SIGTERM')]), [0, 0]);
});
