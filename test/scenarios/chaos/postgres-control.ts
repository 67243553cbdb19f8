import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/** Sends a signal to a postmaster and to all its workers: stopped, Postgres as a whole stands still. */
export function signalPostgres(postmaster: number, signal: 'SIGSTOP' | 'SIGCONT'): void {
  // A stopped postmaster makes no more workers; one that goes on must find them all going.
  if (signal === 'SIGSTOP') send(postmaster, signal);
  for (const pid of childrenOf(postmaster)) send(pid, signal);
  if (signal === 'SIGCONT') send(postmaster, signal);
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // Gone just now.
  }
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
        try {
          // The parent is the second field behind the command's name, which may hold blanks.
          const ppid = readFileSync(`/proc/${name}/stat`, 'utf8')
            .replace(/^.*\) /s, '')
            .split(' ')[1];
          return [[Number(name), Number(ppid)] as [number, number]];
        } catch {
          return [];
        }
      });
  }
  const { stdout } = spawnSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' });
  return stdout
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number) as [number, number]);
}
