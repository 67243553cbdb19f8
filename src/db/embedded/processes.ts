import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** When a living process was started, as a string to compare; undefined when no such process lives. Tells a pid from its reuse. */
export function startOf(pid: number): string | undefined {
  if (process.platform !== 'linux') return ps(pid, 'lstart');
  // Fields count from behind the command's name, which may hold blanks and parentheses; the state is the third, the start the 22nd.
  const fields = readProc(pid, 'stat')
    ?.replace(/^.*\) /s, '')
    .split(' ');
  return fields === undefined || fields[0] === 'Z' ? undefined : fields[19];
}

/** Whether the process is a Postgres server on this cluster. */
export function isPostmasterOf(pid: number, cluster: string): boolean {
  if (startOf(pid) === undefined) return false;
  const command = process.platform === 'linux' ? readProc(pid, 'cmdline')?.replaceAll('\0', ' ') : ps(pid, 'command');
  return command?.includes(`-D ${cluster} `) ?? false;
}

/** Waits until `done` says so, for at most `limitMs`; the answer is whether it did. Other programs' ends can't be awaited. */
export async function pollUntil(done: () => boolean, limitMs: number): Promise<boolean> {
  const end = performance.now() + limitMs;
  while (!done()) {
    if (performance.now() > end) return false;
    await sleep(10);
  }
  return true;
}

function readProc(pid: number, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return undefined;
  }
}

function ps(pid: number, column: string): string | undefined {
  const { status, stdout } = spawnSync('ps', ['-ww', '-o', `${column}=`, '-p', String(pid)], { encoding: 'utf8' });
  const text = stdout?.trim();
  return status === 0 && text ? `${text} ` : undefined;
}
