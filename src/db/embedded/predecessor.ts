import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inUse } from './owner.ts';
import { isPostmasterOf, pollUntil, startOf } from './processes.ts';

/** How a Postgres whose owner died is ended, with the milliseconds each signal is given: a fast shutdown first. */
const pressure = [
  ['SIGINT', 10_000],
  ['SIGQUIT', 3_000],
  ['SIGKILL', 3_000],
] as const;

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
 * Clears the way after an owner that was killed, perhaps together with its supervisor: ends its Postgres, which may be
 * shutting down already or may not know. A Postgres that is not inherited is somebody else's: throws.
 *
 * A lock file whose pid is another program's by now is disarmed, since Postgres would believe it. The rest of the file
 * stays: by it Postgres finds left-over workers of its predecessor.
 */
export async function awaitPredecessor(dataDir: string, cluster: string, isInherited: boolean): Promise<void> {
  const pid = readLockFile(cluster)?.pid;
  if (pid === undefined || startOf(pid) === undefined) return;
  if (!isPostmasterOf(pid, cluster)) {
    const [, ...rest] = readFileSync(lockFile(cluster), 'utf8').split('\n');
    const ended = spawnSync('/bin/sh', ['-c', ':']).pid;
    writeFileSync(lockFile(cluster), [ended, ...rest].join('\n'));
    return;
  }
  const isGone = () => !isPostmasterOf(pid, cluster);
  for (const [signal, limitMs] of isInherited ? pressure : []) {
    try {
      process.kill(pid, signal);
    } catch {
      // Another user's, or gone just now: the wait tells.
    }
    if (await pollUntil(isGone, limitMs)) return;
  }
  throw inUse(dataDir, pid);
}

const lockFile = (cluster: string) => join(cluster, 'postmaster.pid');
