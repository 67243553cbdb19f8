import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { signToken } from '../../src/auth/tokens.ts';
import { parseConfig } from '../../src/config.ts';
import { firstCredits } from '../../src/credits/books.ts';
import { createLog } from '../../src/log.ts';
import { type ServeOptions, type Serving, serve } from '../../src/serve.ts';
import { sharedBundle } from './bundle.ts';
import { atEnd } from './cleanup.ts';
import { createTestDatabase, sharedServerVariable } from './database.ts';
import { assertNoSecretIn, noteKey } from './log-watch.ts';

/** The secret of every test server. */
export const testSecret = 'a secret for tests that is long enough';

/** What a request of a test is made of; everything has a default. */
export type CallOptions = {
  tenant?: string;
  sub?: string;
  scope?: string;
  /** Replaces the signed token. Null: none. */
  token?: string | null;
  key?: string;
  headers?: Record<string, string>;
  /** Sent as JSON; a string is sent as it is. */
  body?: unknown;
  signal?: AbortSignal;
};

/** An answer, read whole. */
export type Called = {
  status: number;
  headers: Headers;
  text: string;
  /** The body as JSON; undefined when there is none. */
  // biome-ignore lint/suspicious/noExplicitAny: a test asserts on whatever is there.
  json: any;
};

/** Sends one request to a server, as a client would. */
export async function call(baseUrl: string, line: string, options: CallOptions = {}): Promise<Called> {
  const [method = 'GET', path = '/'] = line.split(' ');
  const token = options.token === undefined ? await testToken(options) : options.token;
  const headers: Record<string, string> = { ...(token === null ? {} : { authorization: `Bearer ${token}` }) };
  if (options.key !== undefined) headers['idempotency-key'] = options.key;
  if (options.body !== undefined) headers['content-type'] = 'application/json';
  Object.assign(headers, options.headers);
  noteKey(headers['idempotency-key'] ?? '');
  const body = typeof options.body === 'string' ? options.body : JSON.stringify(options.body);
  const response = await fetch(baseUrl + path, {
    method,
    headers,
    ...(body === undefined ? {} : { body }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  const text = await response.text();
  const isJson = text !== '' && /json/.test(response.headers.get('content-type') ?? '');
  return { status: response.status, headers: response.headers, text, json: isJson ? JSON.parse(text) : undefined };
}

/** A bearer token that test servers accept. */
export function testToken(who: { tenant?: string; sub?: string; scope?: string } = {}): Promise<string> {
  const claims = { tenant: who.tenant ?? 'acme', sub: who.sub ?? 'alice' };
  return signToken(testSecret, who.scope === undefined ? claims : { ...claims, scope: who.scope }, 3_600);
}

/** Two tenants, and two people in the first of them. */
function offeredTokens(): Promise<{ tenant: string; sub: string; token: string }[]> {
  const who = [
    { tenant: 'acme', sub: 'alice' },
    { tenant: 'globex', sub: 'bob' },
    { tenant: 'acme', sub: 'carol' },
  ];
  const scope = 'credits:write';
  return Promise.all(who.map(async (claims) => ({ ...claims, token: await testToken({ ...claims, scope }) })));
}

/** A server in this process. */
export type TestServer = Serving & {
  readonly databaseUrl: string;
  /** Its log, one parsed line each. */
  readonly logLines: Record<string, unknown>[];
  call(line: string, options?: CallOptions): Promise<Called>;
};

/** What a test server is made from; `env` is the server's configuration as variables. */
export type TestServerOptions = {
  env?: Record<string, string>;
  /** A database to share; default: one of its own. */
  databaseUrl?: string;
  procedures?: NonNullable<ServeOptions['procedures']>;
  /** The model; default: what `env` names, else the simulated one. */
  provider?: NonNullable<ServeOptions['provider']>;
  /** Gives acme and globex the credits that a first `npm start` gives them. */
  seedCredits?: true;
  /** Offers tokens to the page on this machine, as a first `npm start` does. */
  offersTokens?: true;
  /** Stands between the server and its pool. */
  openDatabase?: NonNullable<ServeOptions['openDatabase']>;
};

/** Starts a server in this process on a fresh database; both are gone after the test, which fails if it leaves something running. */
export async function startServer(t: TestContext, options: TestServerOptions = {}): Promise<TestServer> {
  const databaseUrl = options.databaseUrl ?? (await freshDatabase(t));
  const log: string[] = [];
  const logLines: Record<string, unknown>[] = [];
  const config = parseConfig({ PORT: '0', LLM_SIM_LATENCY_MS: '20', SHUTDOWN_GRACE_MS: '1000', ...options.env });
  const serving = await serve({
    config,
    databaseUrl,
    auth: { secret: testSecret },
    log: createLog(config.logLevel, (line) => {
      log.push(line);
      logLines.push(JSON.parse(line) as Record<string, unknown>);
    }),
    ...(options.procedures && { procedures: options.procedures }),
    ...(options.provider && { provider: options.provider }),
    ...(options.seedCredits && { seedCredits: firstCredits }),
    ...(options.offersTokens && { developmentTokens: offeredTokens }),
    ...(options.openDatabase && { openDatabase: options.openDatabase }),
  });
  atEnd(t, async () => {
    try {
      await assertNothingLeaks(serving);
    } finally {
      await serving.stop();
    }
    assertNoSecretIn(log);
  });
  return { ...serving, databaseUrl, logLines, call: (line, callOptions) => call(serving.url, line, callOptions) };
}

/** A migrated database that is dropped after the test. */
export async function freshDatabase(t: TestContext): Promise<string> {
  const database = await createTestDatabase();
  atEnd(t, () => database.drop());
  return database.url;
}

/** After a test no request runs, no claim is held, nobody is parked and no database session is in use. */
async function assertNothingLeaks(serving: Serving): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('a request is still running after the test')), 3_000);
  });
  await Promise.race([serving.app.idle(), late]).finally(() => clearTimeout(timer));
  assert.equal(serving.keyed.leases.count(), 0, 'a claim is still held after the test');
  assert.equal(serving.keyed.waitingRoom.count(), 0, 'a duplicate is still parked after the test');
}

/** A server as a process of its own, which can be killed and stopped. */
export type ServerProcess = {
  readonly url: string;
  readonly child: ChildProcess;
  readonly output: string[];
  call(line: string, options?: CallOptions): Promise<Called>;
  /** Sends the signal and resolves with the exit code (null: ended by the signal). */
  end(signal: NodeJS.Signals): Promise<number | null>;
};

const mainFile = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const projectDir = fileURLToPath(new URL('../..', import.meta.url));

/** A script that serves the slow procedures of `stage.ts` in a process of its own. */
export const slowServerFile = fileURLToPath(new URL('./slow-server.ts', import.meta.url));

/**
 * Starts the real program (or `entry`, a script of the test that serves and prints the same first line) with these variables.
 * In a run of many test files our own programs start as one file each, which is three times as fast; else by tsx.
 */
export async function startProcess(
  t: TestContext,
  env: Record<string, string>,
  entry: string = mainFile,
): Promise<ServerProcess> {
  const isShared = process.env[sharedServerVariable] !== undefined && entry.startsWith(projectDir);
  const program = isShared ? [await sharedBundle(entry)] : ['--import', 'tsx', entry];
  return await launch(t, [process.execPath, ...program], env);
}

/** Starts the program as a newcomer does: `npm start`. The child is npm, and leads a process group of its own. */
export function startWithNpm(t: TestContext, env: Record<string, string>): Promise<ServerProcess> {
  return launch(t, ['npm', 'start'], env);
}

async function launch(t: TestContext, command: readonly string[], env: Record<string, string>): Promise<ServerProcess> {
  const [program = '', ...args] = command;
  const child = spawn(program, args, {
    cwd: projectDir,
    env: { ...process.env, PORT: '0', AUTH_SECRET: testSecret, LLM_SIM_LATENCY_MS: '20', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const output: string[] = [];
  const exited = once(child, 'exit') as Promise<[number | null]>;
  atEnd(t, async () => {
    try {
      // The whole group: what the child has started too.
      process.kill(-(child.pid as number), 'SIGKILL');
    } catch {
      // Nobody is left.
    }
    await exited;
    assertNoSecretIn(output);
  });
  createInterface({ input: child.stderr as NodeJS.ReadableStream }).on('line', (line) => output.push(line));
  const url = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      output.push(line);
      const listening = /listens on (\S+)/.exec(line)?.[1];
      if (listening !== undefined) resolve(listening);
    });
    // Not `exit`: what was printed last is still on its way then.
    child.once('close', (code) => reject(new ProcessEnded(code, output.join('\n'))));
  });
  return {
    url,
    child,
    output,
    call: (line, options) => call(url, line, options),
    async end(signal) {
      child.kill(signal);
      const [code] = await exited;
      return code;
    },
  };
}

/** A server process that ended instead of listening; `message` is what it printed. */
export class ProcessEnded extends Error {
  override readonly name = 'ProcessEnded';
  readonly code: number | null;
  constructor(code: number | null, output: string) {
    super(output);
    this.code = code;
  }
}
