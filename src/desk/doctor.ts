import type { Config } from '../config.ts';
import type { Database } from '../db/pool.ts';

/** One thing that was looked at. `fail`: the server does not keep its promises like this; `warn`: it does, and something may hurt later. */
export type Finding = { readonly verdict: 'ok' | 'warn' | 'fail'; readonly what: string; readonly advice?: string };

type Facts = {
  version: number;
  settings: Readonly<Record<string, string>>;
  connections: number;
  clockMs: number;
  migrations: number;
  staleKeys: number;
  staleJobs: number;
};

const ok = (what: string): Finding => ({ verdict: 'ok', what });
const warn = (what: string, advice: string): Finding => ({ verdict: 'warn', what, advice });
const fail = (what: string, advice: string): Finding => ({ verdict: 'fail', what, advice });

/** Clock difference between this machine and the database that is worth a word: tokens expire by this machine's. Milliseconds. */
const clockToleranceMs = 2_000;
/** Connections that are left to others: backups, monitoring, a second process during a deploy. */
const spareConnections = 10;

/** Looks at configuration and database and says what to change. Pure but for the statements in `readFacts`. */
export async function examine(config: Config, db: Database, knownMigrations: number): Promise<Finding[]> {
  const beforeMs = Date.now();
  const facts = await readFacts(db);
  return judge(config, facts, (beforeMs + Date.now()) / 2, knownMigrations);
}

/** The findings that facts and configuration make. */
export function judge(config: Config, facts: Facts, nowMs: number, knownMigrations: number): Finding[] {
  const major = Math.floor(facts.version / 10_000);
  const { settings } = facts;
  const maxConnections = Number(settings.max_connections);
  // One more for the events of jobs.
  const needed = config.dbPoolMax + 1;
  const skewMs = Math.round(Math.abs(nowMs - facts.clockMs));
  return [
    major >= 15 ? ok(`PostgreSQL ${major}`) : fail(`PostgreSQL ${major}`, 'use PostgreSQL 15 or newer'),
    facts.migrations === knownMigrations
      ? ok(`all ${knownMigrations} migrations are applied`)
      : facts.migrations < knownMigrations
        ? fail(
            `${facts.migrations} of ${knownMigrations} migrations are applied`,
            'start the server once: it applies them',
          )
        : warn('the database is ahead of this build', 'deploy the newer build here, too'),
    settings.fsync === 'on'
      ? ok('fsync is on')
      : fail('fsync is off', 'set fsync = on: without it a crash loses what was answered'),
    settings.synchronous_commit === 'off'
      ? fail(
          'synchronous_commit is off',
          'set it to on (or local, remote_write, remote_apply): an answered order must survive a crash',
        )
      : ok(`synchronous_commit is ${settings.synchronous_commit}`),
    settings.default_transaction_isolation === 'read committed'
      ? ok('transactions are read committed')
      : warn(
          `default_transaction_isolation is ${settings.default_transaction_isolation}`,
          'set it to read committed: others only add 412 and 503',
        ),
    settings.autovacuum === 'on'
      ? ok('autovacuum is on')
      : fail('autovacuum is off', 'set autovacuum = on: keys are updated and deleted all day'),
    needed + spareConnections <= maxConnections
      ? ok(`a process takes up to ${needed} of ${maxConnections} connections; ${facts.connections} are open now`)
      : fail(
          `a process takes up to ${needed} of ${maxConnections} connections`,
          `set DB_POOL_MAX to at most ${Math.max(1, maxConnections - spareConnections - 1)} divided by the number of processes, or raise max_connections`,
        ),
    skewMs <= clockToleranceMs
      ? ok(`the clocks differ by ${skewMs} ms`)
      : warn(
          `the clocks differ by ${skewMs} ms`,
          'leases follow the database alone, but tokens expire by this machine: synchronise it',
        ),
    config.idempotency.ttlMs >= 86_400_000
      ? ok(`answers are kept for ${config.idempotency.ttlMs / 3_600_000} h`)
      : warn(
          `answers are kept for ${config.idempotency.ttlMs / 1_000} s`,
          'keep them longer than the longest retry window of any client (24 h is usual)',
        ),
    facts.staleKeys === 0
      ? ok('no key waits for an owner')
      : warn(
          `${facts.staleKeys} keys have no owner`,
          'nothing to do: the next try takes each over, and the sweep ends them',
        ),
    facts.staleJobs === 0
      ? ok('no job waits for a lost worker')
      : warn(`${facts.staleJobs} jobs run past their lease`, 'start a process with WORKERS > 0: it takes them over'),
  ];
}

async function readFacts(db: Database): Promise<Facts> {
  const settings = await db.query(
    (sql) => sql<{ name: string; setting: string }[]>`
      select name, setting from pg_settings where name in ('max_connections', 'fsync', 'synchronous_commit',
        'default_transaction_isolation', 'autovacuum', 'server_version_num')`,
  );
  const byName = Object.fromEntries(settings.map(({ name, setting }) => [name, setting]));
  const [now] = await db.query(
    (sql) => sql<{ now: Date; connections: number; is_migrated: boolean }[]>`
      select clock_timestamp() as now, to_regclass('drizzle.__drizzle_migrations') is not null as is_migrated,
        (select count(*)::int from pg_stat_activity where datname = current_database()) as connections`,
  );
  const rows = now?.is_migrated ? await readRows(db) : undefined;
  return {
    version: Number(byName.server_version_num),
    settings: byName,
    connections: now?.connections ?? 0,
    clockMs: now?.now.getTime() ?? 0,
    migrations: rows?.migrations ?? 0,
    staleKeys: rows?.keys ?? 0,
    staleJobs: rows?.jobs ?? 0,
  };
}

async function readRows(db: Database) {
  const [migrations] = await db.query(
    (sql) => sql<{ migrations: number }[]>`select count(*)::int as migrations from drizzle.__drizzle_migrations`,
  );
  // An older schema may lack the tables that the other questions are about.
  const [stale] = await db
    .query(
      (sql) => sql<{ keys: number; jobs: number }[]>`
        select
          (select count(*)::int from idem where state = 'in_progress' and lease_until < now() - interval '1 minute') as keys,
          (select count(*)::int from jobs where status = 'running' and lease_until < now() - interval '1 minute') as jobs`,
    )
    .catch(() => []);
  return { migrations: migrations?.migrations ?? 0, ...stale };
}
