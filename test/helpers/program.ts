import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { TestContext } from 'node:test';

/** The path of a program that Debian has, or undefined: the test then says `skipped: no …`. */
export function findProgram(name: string): string | undefined {
  const found = spawnSync('sh', ['-c', `PATH="$PATH:/usr/sbin:/usr/local/sbin" command -v ${name}`], {
    encoding: 'utf8',
  });
  return found.status === 0 ? found.stdout.trim() : undefined;
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

/** Runs a program until the test ends; resolves once `isUp` says so. Rejects with its output when it ends before. */
export async function runProgram(
  t: TestContext,
  path: string,
  args: readonly string[],
  isUp: () => Promise<boolean>,
): Promise<void> {
  const child = spawn(path, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const output: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => output.push(text));
  let ended = false;
  const exited = once(child, 'exit').then(() => {
    ended = true;
  });
  t.after(async () => {
    child.kill('SIGTERM');
    await exited;
  });
  for (;;) {
    if (ended) throw new Error(`${path} ended:\n${output.join('')}`);
    if (await isUp().catch(() => false)) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
