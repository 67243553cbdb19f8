import { spawnSync } from 'node:child_process';
import { availableParallelism, cpus, totalmem } from 'node:os';
import type postgres from 'postgres';

/** Where figures come from: whoever compares two of them looks here first. */
export type Environment = {
  /** `+` behind it: with changes that are not committed. */
  readonly commit: string;
  readonly date: string;
  readonly node: string;
  readonly postgres: string;
  /** `embedded`, or `given` by DATABASE_URL. */
  readonly database: string;
  readonly cpu: string;
  readonly cores: number;
  readonly memory_gb: number;
  readonly platform: string;
  /** Settings of Postgres that decide what a commit costs. */
  readonly fsync: string;
  readonly synchronous_commit: string;
  readonly shared_buffers: string;
};

/** Asks the machine, git and the database server. */
export async function readEnvironment(sql: postgres.Sql, database: string): Promise<Environment> {
  const rows = await sql<Pick<Environment, 'postgres' | 'fsync' | 'synchronous_commit' | 'shared_buffers'>[]>`
    select current_setting('server_version') as postgres, current_setting('fsync') as fsync,
      current_setting('synchronous_commit') as synchronous_commit,
      current_setting('shared_buffers') as shared_buffers`;
  const { postgres = '', fsync = '', synchronous_commit = '', shared_buffers = '' } = rows[0] ?? {};
  return {
    commit: commit(),
    date: new Date().toISOString().slice(0, 10),
    node: process.versions.node,
    postgres: postgres.split(' ')[0] ?? '',
    database,
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memory_gb: Math.round(totalmem() / 2 ** 30),
    platform: `${process.platform} ${process.arch}`,
    fsync,
    synchronous_commit,
    shared_buffers,
  };
}

function commit(): string {
  const git = (...args: string[]) => {
    const { status, stdout } = spawnSync('git', args, { encoding: 'utf8' });
    return status === 0 ? stdout.trim() : undefined;
  };
  const head = git('rev-parse', '--short', 'HEAD');
  if (head === undefined) return 'unknown';
  // The report itself changes the tree; only what is measured counts.
  const changed = git('status', '--porcelain', '--', 'src', 'bench', 'package-lock.json');
  return changed === '' ? head : `${head}+`;
}
