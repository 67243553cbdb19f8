import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inUse } from './owner.ts';
import { isPostmasterOf, pollUntil, startOf } from './processes.ts';

/** Milliseconds a Postgres whose owner died is given to end by itself; its supervisor has told it to. */
const patienceMs = 15_000;
/** Milliseconds it is given after each further signal. */
const pressureMs = 3_000;

/** What the lock file of a running Postgres says (its first line is the pid, the fourth the port, the eighth how far it is). */
export function readLockFile(cluster: string): { pid: number; status: string | undefined } | undefined {
  try {
    const lines = readFileSync(lockFile(cluster), 'utf8').split('\n');
    const pid = Number(lines[0]);
    return Number.isInteger(pid) && pid > 0 ? { pid, status: lines[7]?.trim() } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Clears the way after a process that was killed together with its Postgres or just before it. Waits for a Postgres that
 * is still shutting down, and ends one that was orphaned. A lock file whose pid is another program's by now is disarmed:
 * Postgres would believe it. The rest of the file stays, by which Postgres finds left-over workers of its predecessor.
 */
export async function awaitPredecessor(dataDir: string, cluster: string): Promise<void> {
  const pid = readLockFile(cluster)?.pid;
  if (pid === undefined || startOf(pid) === undefined) return;
  if (!isPostmasterOf(pid, cluster)) {
    const [, ...rest] = readFileSync(lockFile(cluster), 'utf8').split('\n');
    const ended = spawnSync('/bin/sh', ['-c', ':']).pid;
    writeFileSync(lockFile(cluster), [ended, ...rest].join('\n'));
    return;
  }
  const isGone = () => !isPostmasterOf(pid, cluster);
  if (await pollUntil(isGone, patienceMs)) return;
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGKILL'] as const) {
    try {
      process.kill(pid, signal);
    } catch {
      // Another user's, or gone just now: the wait tells.
    }
    if (await pollUntil(isGone, pressureMs)) return;
  }
  throw inUse(dataDir, pid);
}

const lockFile = (cluster: string) => join(cluster, 'postmaster.pid');
