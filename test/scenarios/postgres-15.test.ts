import assert from 'node:assert/strict';
import { test } from 'node:test';
import { atEnd } from '../helpers/cleanup.ts';
import { noPostgres15, startPostgres15 } from '../helpers/debian-postgres.ts';
import { createDoc } from '../helpers/docs.ts';
import { createJob, ended, ledgerOf, openStream, textOf, topUp } from '../helpers/jobs.ts';
import { startProcess } from '../helpers/server.ts';
import { countOrders, testSql } from '../helpers/sql.ts';

test('on a PostgreSQL 15 of the system the program migrates, keeps keys and tags, runs jobs and tells them', {
  skip: noPostgres15,
  timeout: 90_000,
}, async (t) => {
  const old = await startPostgres15();
  atEnd(t, () => old.stop());
  const databaseUrl = await old.createDatabase('app', false);
  const env = { DATABASE_URL: databaseUrl, LLM_SIM_LATENCY_MS: '300' };
  const [first, second] = await Promise.all([startProcess(t, env), startProcess(t, env)]);
  const sql = testSql(t, databaseUrl);
  const [{ version }] = (await sql`select current_setting('server_version_num')::int as version`) as [
    { version: number },
  ];
  assert.equal(Math.floor(version / 10_000), 15);

  const copies = await Promise.all(
    Array.from({ length: 40 }, (_, i) =>
      (i % 2 === 0 ? first : second).call('POST /v1/orders', { key: 'k', body: { cents: 1, item: 'one' } }),
    ),
  );
  assert.deepEqual(
    [...new Set(copies.map(({ status }) => status))].filter((status) => status !== 409),
    [201],
  );
  assert.equal(await countOrders(sql), 1);
  const replay = await second.call('POST /v1/orders', { key: 'k', body: { item: 'one', cents: 1 } });
  assert.equal(replay.headers.get('idempotent-replayed'), 'true');

  await topUp(first, 50_000_000);
  const tag = await createDoc(first, 'd_1');
  const headers = { 'if-match': tag };
  const rewritten = await first.call('POST /v1/docs/d_1/rewrite', {
    key: 'r',
    headers,
    body: { instruction: 'shorter' },
  });
  assert.equal(rewritten.status, 200, rewritten.text);
  const late = await second.call('PUT /v1/docs/d_1', { headers, body: { title: 't', body: 'b' } });
  assert.equal(late.status, 412);
  assert.equal(late.headers.get('etag'), rewritten.headers.get('etag'));

  const id = await createJob(second, 'job', 'hello');
  const events = await (await openStream(first, id)).rest();
  assert.equal(textOf(events), (await ended(first, id)).result);
  const { held_micros, items } = await ledgerOf(first);
  assert.equal(held_micros, 0);
  assert.equal(items.filter(({ kind }) => kind === 'charge').length, 2);
});
