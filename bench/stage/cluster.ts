import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import postgres from 'postgres';
import { type EmbeddedPostgres, startEmbedded } from '../../src/db/embedded.ts';
import { migrate } from '../../src/db/migrate.ts';

/** A database of one variant. */
export type BenchDatabase = {
  readonly url: string;
  readonly oid: number;
  /** A connection beside the server's, for filling tables and counting rows. */
  readonly sql: postgres.Sql;
  drop(): Promise<void>;
};

/** The database server that everything is measured on. */
export type Cluster = {
  readonly kind: 'embedded' | 'given';
  /** On its maintenance database, so that what is asked here is not counted there. */
  readonly sql: postgres.Sql;
  /** The process whose children do the work; undefined for a server that is not ours. */
  readonly pid: number | undefined;
  /** Whether statements are counted (the extension pg_stat_statements). */
  readonly countsStatements: boolean;
  createDatabase(): Promise<BenchDatabase>;
  /** Drops what was made; the embedded one is stopped and removed. */
  stop(): Promise<void>;
};

const prefix = 'bench_';

/** Starts the embedded Postgres in a folder of its own below `dataDir`, or connects to the server at `url`. */
export async function openCluster(url: string | undefined, dataDir: string): Promise<Cluster> {
  const embedded = url === undefined ? await startOwn(dataDir) : undefined;
  const base = embedded?.postgres.url ?? (url as string);
  const sql = postgres(base, { max: 2, fetch_types: false, onnotice: () => {} });
  const databases = new Set<BenchDatabase>();
  const stop = async () => {
    try {
      await Promise.all([...databases].map((database) => database.drop()));
      await sql.end({ timeout: 1 });
    } finally {
      await embedded?.stop();
    }
  };
  try {
    return {
      kind: embedded === undefined ? 'given' : 'embedded',
      sql,
      pid: embedded?.postgres.pid,
      countsStatements: await countsStatements(sql),
      async createDatabase() {
        const database = await createDatabase(base, sql, () => databases.delete(database));
        databases.add(database);
        return database;
      },
      stop,
    };
  } catch (error) {
    await stop().catch(() => {});
    throw error;
  }
}

async function startOwn(dataDir: string): Promise<{ postgres: EmbeddedPostgres; stop(): Promise<void> }> {
  mkdirSync(dataDir, { recursive: true });
  removeAbandoned(dataDir);
  const folder = resolve(dataDir, `bench-${process.pid}`);
  const server = await startEmbedded({
    dataDir: folder,
    settings: { shared_preload_libraries: 'pg_stat_statements' },
  });
  return {
    postgres: server,
    async stop() {
      await server.stop();
      // For root the cluster is not in its data folder.
      for (const path of [dirname(server.cluster), folder])
        rmSync(path, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Removes the folders of runs that were killed. */
function removeAbandoned(dataDir: string): void {
  const names = readdirSync(resolve(dataDir), { withFileTypes: true, encoding: 'utf8' }).map((entry) => entry.name);
  for (const name of names) {
    const pid = Number(/^bench-([0-9]+)$/.exec(name)?.[1]);
    if (Number.isNaN(pid) || isAlive(pid)) continue;
    rmSync(join(resolve(dataDir), name), { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

async function countsStatements(sql: postgres.Sql): Promise<boolean> {
  try {
    await sql`create extension if not exists pg_stat_statements`;
    await sql`select 1 from pg_stat_statements limit 1`;
    return true;
  } catch {
    // Not installed, not preloaded or not allowed: the column stays empty.
    return false;
  }
}

async function createDatabase(base: string, admin: postgres.Sql, onDrop: () => void): Promise<BenchDatabase> {
  const name = `${prefix}${randomBytes(6).toString('hex')}`;
  await admin`create database ${admin(name)}`;
  const parsed = new URL(base);
  parsed.pathname = `/${name}`;
  await migrate(parsed.href);
  const [row] = await admin<
    { oid: number }[]
  >`select oid::int8::float8 as oid from pg_database where datname = ${name}`;
  const sql = postgres(parsed.href, { max: 2, fetch_types: false, onnotice: () => {} });
  return {
    url: parsed.href,
    oid: row?.oid ?? 0,
    sql,
    async drop() {
      onDrop();
      await sql.end({ timeout: 1 });
      await admin`drop database if exists ${admin(name)} with (force)`;
    },
  };
}
