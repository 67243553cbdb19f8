import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Answers, Ask, FromServer, ToServer } from './channel.ts';

/** The server under test, in a process of its own. */
export type ServerProcess = {
  readonly url: string;
  /** The bare `node:http` server beside it. */
  readonly bareUrl: string;
  ask<A extends Ask>(ask: A): Promise<Answers[A['kind']]>;
  /** What it has written, warnings and errors alone. */
  output(): string;
  /** Lets it drain; kills it when it does not end. */
  stop(): Promise<void>;
};

/** The secret of every server under test. */
export const benchSecret = 'a secret for benchmarks, long enough';
/** Milliseconds a server is given to end by itself. */
const stopLimitMs = 5_000;
/** Characters of its output that are kept. */
const maxOutput = 20_000;

/** Its source, of which `bundleProgram` makes the program. */
export const serverEntry = fileURLToPath(new URL('../server.ts', import.meta.url));

/** Variables that the caller's own environment must not decide. */
const neutral =
  /^(AUTH_|DB_|IDEMPOTENCY_|LLM_|JOB_|RATE_LIMIT_|DATABASE_URL|WORKERS|HOST|PORT|LOG_LEVEL|MAX_BODY|CORS)/;

/** Starts the server; rejects with what it wrote when it does not come up. It ends when this process does. */
export async function startServerProcess(
  program: string,
  env: Readonly<Record<string, string>>,
): Promise<ServerProcess> {
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !neutral.test(name)));
  const child = spawn(process.execPath, [program], {
    env: { ...inherited, PORT: '0', AUTH_SECRET: benchSecret, LOG_LEVEL: 'warn', ...env },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      output = (output + chunk).slice(-maxOutput);
    });
  }
  const exited = once(child, 'exit');
  const waiting = new Map<number, (answer: unknown) => void>();
  const listening = new Promise<{ url: string; bareUrl: string }>((resolve, reject) => {
    child.on('message', (message: FromServer) => {
      if (message.kind === 'listening') resolve(message);
      else {
        waiting.get(message.id)?.(message.answer);
        waiting.delete(message.id);
      }
    });
    void exited.then(([code]) => reject(new Error(`the server ended with ${code}:\n${output}`)));
  });
  const { url, bareUrl } = await listening;
  let nextId = 0;
  return {
    url,
    bareUrl,
    ask: (ask) =>
      new Promise((resolve, reject) => {
        nextId += 1;
        waiting.set(nextId, (answer) => resolve(answer as never));
        const message: ToServer = { id: nextId, ask };
        child.send(message, (error) => error !== null && reject(new Error(`the server is gone:\n${output}`)));
        void exited.then(() => reject(new Error(`the server ended:\n${output}`)));
      }),
    output: () => output,
    stop: () => stop(child, exited),
  };
}

async function stop(child: ChildProcess, exited: Promise<unknown>): Promise<void> {
  child.kill('SIGTERM');
  const late = setTimeout(() => child.kill('SIGKILL'), stopLimitMs);
  await exited;
  clearTimeout(late);
}
