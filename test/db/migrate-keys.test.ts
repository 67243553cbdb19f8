import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type postgres from 'postgres';
import { migrate, migrateKeys } from '../../src/db/migrate.ts';
import { openDatabase } from '../../src/db/pool.ts';
import { claimBatch, complete } from '../../src/idempotency/claims.ts';
import { sweepOnce } from '../../src/idempotency/sweep.ts';
import { takeToken } from '../../src/limits/token-bucket.ts';
import { atEnd } from '../helpers/cleanup.ts';
import { emptyDatabase } from '../helpers/database.ts';
import { testSql } from '../helpers/sql.ts';

async function empty(t: TestContext): Promise<{ url: string; sql: postgres.Sql }> {
  const database = await emptyDatabase();
  atEnd(t, () => database.drop());
  return { url: database.url, sql: testSql(t, database.url) };
}

/** All that a table is, but the name of its schema. */
async function anatomy(sql: postgres.Sql, schema: string, table: string): Promise<unknown> {
  const name = `${schema}.${table}`;
  const columns = await sql`
    select attname, format_type(atttypid, atttypmod) as type, attnotnull, attcollation, pg_get_expr(adbin, adrelid) as fallback
    from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum
    where attrelid = ${name}::regclass and attnum > 0 order by attname`;
  const constraints = await sql`
    select conname, pg_get_constraintdef(oid) as rule from pg_constraint
    where conrelid = ${name}::regclass and contype <> 'n' order by conname`;
  const indexes = await sql`
    select replace(indexdef, ${`${schema}.`}, '') as def from pg_indexes
    where schemaname = ${schema} and tablename = ${table} order by indexname`;
  const [storage] = await sql`select reloptions from pg_class where oid = ${name}::regclass`;
  return JSON.parse(JSON.stringify({ columns, constraints, indexes, storage }));
}

test('the tables of the key are the same in a schema of their own as among ours', async (t) => {
  const { url, sql } = await empty(t);
  await migrate(url);
  await migrateKeys(url, 'keys');
  for (const table of ['idem', 'buckets']) {
    assert.deepEqual(await anatomy(sql, 'keys', table), await anatomy(sql, 'public', table), table);
  }
});

test('migrating the keys leaves the rest of a database and its own migrations alone', async (t) => {
  const { url, sql } = await empty(t);
  await sql`create table idem (mine int)`;
  await sql`create table buckets (mine int)`;
  const applied = await Promise.all(Array.from({ length: 4 }, () => migrateKeys(url)));
  assert.deepEqual(applied.sort(), [0, 0, 0, 2]);
  const tables = await sql`
    select schemaname || '.' || tablename as name from pg_tables
    where schemaname not in ('pg_catalog', 'information_schema') order by 1`;
  assert.deepEqual(
    tables.map(({ name }) => name),
    ['public.buckets', 'public.idem', 'retry_safe.__drizzle_migrations', 'retry_safe.buckets', 'retry_safe.idem'],
  );
});

test('keys, sweep and rate limit work in a schema whose name needs quotes', async (t) => {
  const { url, sql } = await empty(t);
  const schema = 'My "keys"';
  await migrateKeys(url, schema);
  const db = openDatabase({ url, max: 2, prepare: true, queryTimeoutMs: 5_000, keySchema: schema });
  atEnd(t, () => db.close(0));
  const claim = { tenant: 'acme', key: 'k', fencingToken: '6f0c7d2e-58c1-4d8e-9c52-4f6d6a9a0b11' };
  const settings = { leaseMs: 60_000, ttlMs: 60_000, tombstoneMs: 0 };
  const [outcome] = await claimBatch(db, settings, [{ ...claim, fingerprint: Buffer.alloc(1), durable: false }]);
  assert.equal(outcome?.kind, 'claimed');
  const answer = { status: 204, headers: {}, body: null };
  assert.equal(await db.transaction((tx) => complete(tx.sql, claim, answer, db)), true);
  await takeToken(db, { perMinute: 1, burst: 1 }, 'acme');
  await assert.rejects(takeToken(db, { perMinute: 1, burst: 1 }, 'acme'), { code: 'rate_limited' });
  const table = sql`${sql(schema)}.idem`;
  await sql`update ${table} set expires_at = now() - interval '1 minute', sweep_at = now()`;
  assert.deepEqual(await sweepOnce(db, settings), { expired: 0, deleted: 1 });
});
