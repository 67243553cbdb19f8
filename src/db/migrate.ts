import { fileURLToPath } from 'node:url';
import { type MigrationMeta, readMigrationFiles } from 'drizzle-orm/migrator';
import type postgres from 'postgres';
import { quoteName } from './key-table.ts';
import { openDatabase } from './pool.ts';

/** The oldest server that the statements are tried on, as `server_version_num` has it. */
const oldestServer = 150_000;
/** Milliseconds for all migrations together, the wait for another process that is migrating included. */
const limitMs = 10 * 60_000;
/** Names the lock among all advisory locks of the database; any number that nobody else takes. */
const lockKey = 7_277_001_503;

/** The server is too old; the message says which it is. */
export class UnsupportedServerError extends Error {
  override readonly name = 'UnsupportedServerError';
}

/** Where drizzle's own migrator remembers, so that drizzle's tools see the same state. */
const drizzlesMemory = 'drizzle';
/** Where the tables of the key are in a database that has others. */
export const defaultKeySchema = 'retry_safe';

const folderBeside = (name: string) => fileURLToPath(new URL(`./${name}`, import.meta.url));

/**
 * Brings the database to the newest of the migrations that drizzle-kit generated; answers how many it applied.
 *
 * Any number of processes may do so at once: the first one applies, the others wait and find nothing to do. The lock is the
 * transaction's, so that it holds behind PgBouncer too, and everything is applied in that transaction or nothing.
 */
export function migrate(url: string, folder: string = folderBeside('migrations')): Promise<number> {
  return applyAll(url, readMigrationFiles({ migrationsFolder: folder }), drizzlesMemory);
}

/**
 * The same for the tables that the protocol of the key needs, and no others. They and what remembers them are in a schema
 * of their own, which neither your migrations nor drizzle-kit look at.
 */
export function migrateKeys(url: string, schema: string = defaultKeySchema): Promise<number> {
  return applyAll(url, readMigrationFiles({ migrationsFolder: folderBeside('key-migrations') }), schema, schema);
}

/** `memory`: the schema of the table that remembers. `home`: the schema that is made into; else the search path's first. */
async function applyAll(
  url: string,
  migrations: readonly MigrationMeta[],
  memory: string,
  home?: string,
): Promise<number> {
  const table = `${quoteName(memory)}.__drizzle_migrations`;
  const newest = (sql: postgres.Sql) => sql.unsafe<Applied[]>(`select max(created_at) as at from ${table}`);
  const db = openDatabase({ url, max: 1, prepare: false, queryTimeoutMs: limitMs });
  try {
    const [server] = await db.query(
      (sql) => sql<{ version: number; name: string; migrated: boolean }[]>`
        select current_setting('server_version_num')::int as version, current_setting('server_version') as name,
          to_regclass(${table}) is not null as migrated`,
    );
    if (server === undefined || server.version < oldestServer) {
      throw new UnsupportedServerError(`PostgreSQL 15 or newer is needed; this server is ${server?.name}`);
    }
    if (server.migrated && missing(migrations, await db.query(newest)).length === 0) return 0;
    return await db.transaction(async ({ sql }) => {
      await sql`select pg_advisory_xact_lock(${lockKey}::int8)`;
      await sql.unsafe(`create schema if not exists ${quoteName(memory)}`);
      await sql.unsafe(
        `create table if not exists ${table} (id serial primary key, hash text not null, created_at int8)`,
      );
      if (home !== undefined) await sql`select set_config('search_path', ${quoteName(home)}, true)`;
      const open = missing(migrations, await newest(sql));
      for (const { sql: statements, hash, folderMillis } of open) {
        for (const statement of statements) await sql.unsafe(statement);
        await sql.unsafe(`insert into ${table} (hash, created_at) values ($1, $2::int8)`, [hash, folderMillis]);
      }
      return open.length;
    });
  } finally {
    await db.close(0);
  }
}

type Applied = { at: number | null };

function missing(migrations: readonly MigrationMeta[], newest: readonly Applied[]): MigrationMeta[] {
  const at = newest[0]?.at ?? 0;
  return migrations.filter((migration) => migration.folderMillis > at);
}
