import { spawn } from 'node:child_process';

/** Seconds after which whatever was stopped goes on by itself: longer than any stop that is meant. */
const limitSeconds = 5;

/** Stops processes. Should the bench die meanwhile, they go on by themselves, notice that, and end. */
export function stopSafely(pids: readonly number[]): void {
  const script = `sleep ${limitSeconds}; kill -s CONT "$@" 2>/dev/null`;
  spawn('/bin/sh', ['-c', script, 'sh', ...pids.map(String)], { stdio: 'ignore', detached: true }).unref();
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGSTOP');
    } catch {
      // Gone just now.
    }
  }
}
