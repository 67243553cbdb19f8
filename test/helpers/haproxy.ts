import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { findProgram, freePort, runProgram } from './program.ts';

/** The path of haproxy, or undefined. */
export const haproxy = findProgram('haproxy');

/** Starts a haproxy in front of backends that waits `answerMs` for an answer; `backend` is more of its configuration. Answers its URL. */
export async function startHaproxy(
  t: TestContext,
  backends: readonly string[],
  answerMs: number,
  backend = '',
): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'retry-safe-haproxy-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const port = await freePort();
  const servers = backends.map((url, i) => `  server s${i} ${new URL(url).host}`).join('\n');
  const file = join(dir, 'haproxy.cfg');
  await writeFile(
    file,
    `global
  maxconn 1000
defaults
  mode http
  timeout connect 1s
  timeout client 30s
  timeout server ${answerMs}ms
frontend front
  bind 127.0.0.1:${port}
  default_backend app
backend app
  balance roundrobin
${backend}
${servers}
`,
  );
  const url = `http://127.0.0.1:${port}`;
  // In the foreground, as one process.
  await runProgram(t, haproxy as string, ['-db', '-f', file], async () => (await fetch(`${url}/healthz`)).ok);
  return url;
}
