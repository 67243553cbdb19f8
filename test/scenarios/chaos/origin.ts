import { spawnSync } from 'node:child_process';
import { availableParallelism, cpus } from 'node:os';
import type { Origin } from './page.ts';

/**
 * Asks machine and git where a run's figures come from; `postgres` is the server's version. A commit with changes in `src` or in
 * what measures gets a `+`.
 */
export function readOrigin(postgres: string, measuredBy: readonly string[] = ['test/scenarios/chaos']): Origin {
  return {
    commit: commit(['src', ...measuredBy]),
    date: new Date().toISOString().slice(0, 10),
    node: process.versions.node,
    postgres,
    machine: `${availableParallelism()} cores of ${cpus()[0]?.model.trim() ?? 'unknown'}, shared by clients, servers and Postgres`,
  };
}

function commit(paths: readonly string[]): string {
  const git = (...args: string[]) => {
    const { status, stdout } = spawnSync('git', args, { encoding: 'utf8' });
    return status === 0 ? stdout.trim() : undefined;
  };
  const head = git('rev-parse', '--short', 'HEAD');
  if (head === undefined) return 'unknown';
  return git('status', '--porcelain', '--', ...paths) === '' ? head : `${head}+`;
}
