import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { Account } from './account.ts';

/**
 * Runs "$@" and passes on the signals that are named on standard input, a line each. Its end, which comes when the process
 * at the other end of the pipe dies for whatever reason, stops the program: INT (to Postgres a fast shutdown), ten seconds
 * later QUIT.
 */
const script = `
exec 3<&0
"$@" </dev/null 3<&- &
program=$!
{
  while read -r signal; do kill -s "$signal" "$program"; done
  kill -s INT "$program"
  tries=100
  while [ "$tries" -gt 0 ] && kill -0 "$program"; do sleep 0.1; tries=$((tries - 1)); done
  kill -s QUIT "$program"
} <&3 >/dev/null 2>&1 &
reader=$!
exec 3<&-
wait "$program"
code=$?
kill "$reader" 2>/dev/null
exit "$code"
`;

/** A program that can't outlive this process. */
export type Supervised = {
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  readonly isRunning: boolean;
  signal(name: 'INT' | 'QUIT'): void;
  /** From here on it keeps no event loop alive. */
  unref(): void;
  /** Ends supervisor and program by force. */
  kill(): void;
};

/**
 * Starts a program under a supervisor of its own session: a terminal's Ctrl-C does not reach it, so that Postgres still runs
 * while requests in flight finish. What it writes goes to the log file, which is begun anew.
 */
export function supervise(command: readonly string[], account: Account | undefined, logFile: string): Supervised {
  const log = openSync(logFile, 'w', 0o600);
  const child = spawn('/bin/sh', ['-c', script, 'sh', ...command], {
    ...account,
    cwd: '/',
    detached: true,
    stdio: ['pipe', log, log],
    env: { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
  });
  closeSync(log);
  child.stdin?.on('error', () => {});
  let running = true;
  const ended = endOf(child).finally(() => {
    running = false;
  });
  ended.catch(() => {});
  return {
    ended,
    get isRunning() {
      return running;
    },
    signal(name) {
      child.stdin?.write(`${name}\n`);
    },
    unref() {
      child.unref();
      (child.stdin as Socket | null)?.unref();
    },
    kill() {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // Gone already.
      }
    },
  };
}

function endOf(child: ChildProcess): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
}
