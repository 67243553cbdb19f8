import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { stopSafely } from './stop-safely.ts';

/** Stops a postmaster and all its workers, so that Postgres as a whole stands still; answers how it goes on. */
export function stopPostgres(postmaster: number): () => void {
  // A stopped postmaster makes no more workers.
  stopSafely([postmaster]);
  const workers = childrenOf(postmaster);
  stopSafely(workers);
  return () => {
    for (const pid of [...workers, postmaster]) {
      try {
        process.kill(pid, 'SIGCONT');
      } catch {
        // Gone just now.
      }
    }
  };
}

function childrenOf(parent: number): number[] {
  return parents()
    .filter(([, ppid]) => ppid === parent)
    .map(([pid]) => pid);
}

/** Each process with its parent. */
function parents(): [number, number][] {
  if (process.platform === 'linux') {
    return readdirSync('/proc')
      .filter((name) => /^[0-9]+$/.test(name))
      .flatMap((name) => {
        const ppid = parentOf(name);
        return ppid === undefined ? [] : [[Number(name), ppid] as [number, number]];
      });
  }
  const { stdout } = spawnSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' });
  return stdout
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number) as [number, number]);
}

/** The second field behind the command's name, which may hold blanks. */
function parentOf(pid: string): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(stat.replace(/^.*\) /s, '').split(' ')[1]);
  } catch {
    return undefined;
  }
}
