import { fileURLToPath } from 'node:url';
import { type MigrationMeta, readMigrationFiles } from 'drizzle-orm/migrator';
import type postgres from 'postgres';
import { openDatabase } from './pool.ts';

/** The oldest server that the statements are tried on, as `server_version_num` has it. */
const oldestServer = 150_000;
/** Milliseconds for all migrations together, the wait for another process that is migrating included. */
const limitMs = 10 * 60_000;
/** Names the lock among all advisory locks of the database; any number that nobody else takes. */
const lockKey = 7_277_001_503;

const ownMigrations = fileURLToPath(new URL('./migrations', import.meta.url));

/** The server is too old; the message says which it is. */
export class UnsupportedServerError extends Error {
  override readonly name = 'UnsupportedServerError';
}

/**
 * Brings the database to the newest of the migrations that drizzle-kit generated; answers how many it applied.
 *
 * Any number of processes may do so at once: the first one applies, the others wait and find nothing to do. The lock is the
 * transaction's, so that it holds behind PgBouncer too, and everything is applied in that transaction or nothing. The table
 * that remembers is drizzle's own, so that drizzle's tools see the same state.
 */
export async function migrate(url: string, folder: string = ownMigrations): Promise<number> {
  const migrations = readMigrationFiles({ migrationsFolder: folder });
  const db = openDatabase({ url, max: 1, prepare: false, queryTimeoutMs: limitMs });
  try {
    const [server] = await db.query(
      (sql) => sql<{ version: number; name: string; migrated: boolean }[]>`
        select current_setting('server_version_num')::int as version, current_setting('server_version') as name,
          to_regclass('drizzle.__drizzle_migrations') is not null as migrated`,
    );
    if (server === undefined || server.version < oldestServer) {
      throw new UnsupportedServerError(`PostgreSQL 15 or newer is needed; this server is ${server?.name}`);
    }
    if (server.migrated) {
      const last = await db.query((sql) => lastApplied(sql));
      if (missing(migrations, last).length === 0) return 0;
    }
    return await db.transaction((tx) => apply(tx.sql, migrations));
  } finally {
    await db.close(0);
  }
}

async function apply(sql: postgres.Sql, migrations: readonly MigrationMeta[]): Promise<number> {
  await sql`select pg_advisory_xact_lock(${lockKey}::int8)`;
  await sql`create schema if not exists drizzle`;
  await sql`create table if not exists drizzle.__drizzle_migrations (
    id serial primary key, hash text not null, created_at int8)`;
  const open = missing(migrations, await lastApplied(sql));
  for (const migration of open) {
    for (const statement of migration.sql) await sql.unsafe(statement);
    await sql`insert into drizzle.__drizzle_migrations (hash, created_at)
      values (${migration.hash}, ${migration.folderMillis}::int8)`;
  }
  return open.length;
}

type Applied = { at: number | null };

function lastApplied(sql: postgres.Sql): postgres.PendingQuery<Applied[]> {
  return sql<Applied[]>`select max(created_at) as at from drizzle.__drizzle_migrations`;
}

function missing(migrations: readonly MigrationMeta[], last: readonly Applied[]): MigrationMeta[] {
  const at = last[0]?.at ?? 0;
  return migrations.filter((migration) => migration.folderMillis > at);
}
