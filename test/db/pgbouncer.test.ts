import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql as drizzleSql } from 'drizzle-orm';
import postgres from 'postgres';
import { migrate } from '../../src/db/migrate.ts';
import { type Database, DatabaseUnavailable, openDatabase } from '../../src/db/pool.ts';
import { emptyDatabase, type TestDatabase } from '../helpers/database.ts';
import { noPgBouncer, type PgBouncer, startPgBouncer } from '../helpers/pgbouncer.ts';

let database: TestDatabase;
let bouncer: PgBouncer;
let db: Database;

before(async () => {
  if (noPgBouncer) return;
  database = await emptyDatabase();
  // Fewer sessions than the pool has connections: neighbours take turns on one session.
  bouncer = await startPgBouncer(database.url, 2);
  db = openDatabase({ url: bouncer.through(database.url), max: 8, prepare: false, queryTimeoutMs: 2_000 });
});
after(async () => {
  if (noPgBouncer) return;
  await db.close(0);
  await bouncer.stop();
  await database.drop();
});

test('several migrate an empty database at once through PgBouncer in transaction mode', {
  skip: noPgBouncer,
}, async () => {
  const url = bouncer.through(database.url);
  const applied = await Promise.all(Array.from({ length: 4 }, () => migrate(url)));
  assert.equal(applied.filter((n) => n > 0).length, 1);
});

test('statements and transactions of many callers share two sessions of PgBouncer without mixing', {
  skip: noPgBouncer,
}, async () => {
  await db.query((sql) => sql`create table turns (n int, part int)`);
  await Promise.all(
    Array.from({ length: 200 }, async (_, n) => {
      if (n % 2 === 0) {
        const rows = await db.query((sql) => sql`select ${n}::int as n, ${String(n)}::text as t`);
        assert.deepEqual({ ...rows[0] }, { n, t: String(n) });
        return;
      }
      await db.transaction(async ({ sql, orm }) => {
        await sql`insert into turns values (${n}, 1)`;
        await orm.execute(drizzleSql`insert into turns values (${n}, 2)`);
      });
    }),
  );
  const [row] = await db.query((sql) => sql`select count(*) as n, count(distinct n) as both from turns`);
  assert.deepEqual({ ...row }, { n: 200, both: 100 });
});

test('the deadline reaches a statement behind PgBouncer: it is cancelled, and the sessions are free again', {
  skip: noPgBouncer,
}, async () => {
  const slow = Array.from({ length: 2 }, () => db.query((sql) => sql`select pg_sleep(30)`));
  for (const { reason } of (await Promise.allSettled(slow)) as PromiseRejectedResult[]) {
    assert.ok(reason instanceof DatabaseUnavailable && reason.reason === 'deadline');
  }
  assert.equal((await db.query((sql) => sql`select 1 as one`))[0]?.one, 1);
  const direct = postgres(database.url, { max: 1 });
  const left = await direct`select 1 from pg_stat_activity where query like 'select pg_sleep(30)' and state = 'active'`;
  await direct.end();
  assert.equal(left.length, 0);
});
