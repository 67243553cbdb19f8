import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { createClient } from '../../src/client/index.ts';
import { atEnd } from '../helpers/cleanup.ts';
import { noPostgres15, startPostgres15 } from '../helpers/debian-postgres.ts';
import { startProcess, testToken } from '../helpers/server.ts';
import { testSql, until } from '../helpers/sql.ts';

/** Clients that place orders, one after the other. */
const clients = 4;

test('a primary that is killed under load and its synchronous standby promoted: no acknowledged order is lost, none is there twice', {
  skip: noPostgres15,
  timeout: 120_000,
}, async (t) => {
  const primary = await startPostgres15();
  atEnd(t, () => primary.stop());
  const databaseUrl = await primary.createDatabase('app');
  const standby = await primary.startStandby('standby');
  atEnd(t, () => standby.stop());
  const before = testSql(t, databaseUrl);
  // From now on a commit is answered when the standby has it. The standby was copied before, so it waits for nobody.
  await before`alter system set synchronous_standby_names = '*'`;
  await before`select pg_reload_conf()`;
  await until(async () => (await before`select 1 from pg_stat_replication where sync_state = 'sync'`).length === 1);

  const both = `postgres://postgres@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/app`;
  const server = await startProcess(t, { DATABASE_URL: both, DB_QUERY_TIMEOUT_MS: '1000' });
  const client = createClient({
    baseUrl: server.url,
    token: await testToken(),
    patience: { backOffMs: 100, budgetMs: 60_000 },
  });
  const acknowledged = new Map<string, string>();
  let isOver = false;
  const work = async () => {
    while (!isOver) {
      const key = randomUUID();
      const { body } = await client.call('createOrder', { body: { cents: 1, item: key } }, { key });
      acknowledged.set(key, body.order_id);
    }
  };
  const running = Promise.all(Array.from({ length: clients }, work));
  await until(() => acknowledged.size > 40);

  await primary.kill();
  const beforeKill = acknowledged.size;
  await standby.promote();
  await until(() => acknowledged.size > beforeKill + 40);
  isOver = true;
  await running;

  const after = testSql(t, `postgres://postgres@127.0.0.1:${standby.port}/app`);
  const rows = await after<{ item: string; n: number }[]>`select item, count(*)::int as n from orders group by item`;
  const orders = new Map(rows.map(({ item, n }) => [item, n]));
  assert.deepEqual(
    [...acknowledged.keys()].filter((key) => orders.get(key) !== 1),
    [],
  );
  assert.deepEqual(
    rows.filter(({ n }) => n !== 1),
    [],
  );
  for (const [key, orderId] of [...acknowledged].slice(0, 20)) {
    const again = await client.call('createOrder', { body: { cents: 1, item: key } }, { key });
    assert.equal(again.replayed, true);
    assert.equal(again.body.order_id, orderId);
  }
  t.diagnostic(`${beforeKill} orders acknowledged before, ${acknowledged.size - beforeKill} after`);
});
