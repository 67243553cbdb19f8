import { readdirSync, readFileSync } from 'node:fs';
import type { Metrics } from '../cell.ts';
import type { BenchDatabase, Cluster } from './cluster.ts';
import type { ServerProcess } from './server-process.ts';

/** Everything that is read before and after a round; counters only grow. */
export type Reading = {
  readonly node_cpu_ms: number;
  readonly client_cpu_ms: number;
  readonly wal_bytes: number;
  /** Undefined where the database server is not ours or not on Linux. */
  readonly postgres_cpu_ms: number | undefined;
  /** Undefined without pg_stat_statements. */
  readonly statements: number | undefined;
  readonly db_ms: number | undefined;
  readonly buffers: number | undefined;
  readonly rss_bytes: number;
};

/** Reads CPU, write-ahead log and statements of the server and the database. */
export async function readGauges(cluster: Cluster, database: BenchDatabase, server: ServerProcess): Promise<Reading> {
  const [{ cpuMs, rssBytes }, wal, counted] = await Promise.all([
    server.ask({ kind: 'usage' }),
    cluster.sql<{ bytes: number }[]>`
      select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as bytes`,
    cluster.countsStatements ? readStatements(cluster, database) : undefined,
  ]);
  const { user, system } = process.cpuUsage();
  return {
    node_cpu_ms: cpuMs,
    client_cpu_ms: (user + system) / 1_000,
    wal_bytes: wal[0]?.bytes ?? 0,
    postgres_cpu_ms: cluster.pid === undefined ? undefined : postgresCpuMs(cluster.pid),
    statements: counted?.statements,
    db_ms: counted?.db_ms,
    buffers: counted?.buffers,
    rss_bytes: rssBytes,
  };
}

type Counted = { statements: number; db_ms: number; buffers: number };

async function readStatements(cluster: Cluster, database: BenchDatabase): Promise<Counted | undefined> {
  const rows = await cluster.sql<Counted[]>`
    select coalesce(sum(calls), 0)::float8 as statements, coalesce(sum(total_exec_time), 0)::float8 as db_ms,
      coalesce(sum(shared_blks_hit + shared_blks_read), 0)::float8 as buffers
    from pg_stat_statements where dbid = ${database.oid}::int8::oid`;
  return rows[0];
}

/** What a round used, by two readings. */
export function used(before: Reading, after: Reading): Metrics {
  const metrics: Record<string, number> = { rss_mb: after.rss_bytes / 2 ** 20 };
  for (const name of [
    'node_cpu_ms',
    'client_cpu_ms',
    'wal_bytes',
    'postgres_cpu_ms',
    'statements',
    'db_ms',
    'buffers',
  ] as const) {
    const [from, to] = [before[name], after[name]];
    if (from !== undefined && to !== undefined) metrics[name] = to - from;
  }
  return metrics;
}

/** Clock ticks a second that Linux counts CPU time in; 100 on every architecture Node runs on. */
const ticksPerSecond = 100;

/** CPU time of a Postgres server so far: its living children, and those that ended, whose time it inherits. */
function postgresCpuMs(postmaster: number): number | undefined {
  if (process.platform !== 'linux') return undefined;
  let ticks = 0;
  for (const name of readdirSync('/proc')) {
    if (!/^[0-9]+$/.test(name)) continue;
    const fields = statOf(name);
    if (fields === undefined) continue;
    // Counted from behind the command's name: 1 the parent, 11 and 12 the own time, 13 and 14 that of ended children.
    const own = Number(fields[11]) + Number(fields[12]);
    if (Number(name) === postmaster) ticks += own + Number(fields[13]) + Number(fields[14]);
    else if (Number(fields[1]) === postmaster) ticks += own;
  }
  return (ticks * 1_000) / ticksPerSecond;
}

function statOf(pid: string): string[] | undefined {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
  } catch {
    // It ended between the listing and the look.
    return undefined;
  }
}
