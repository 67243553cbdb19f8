import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { type EmbeddedOptions, type EmbeddedPostgres, startEmbedded } from '../../src/db/embedded.ts';
import { migrate } from '../../src/db/migrate.ts';

/** Names the variable by which `scripts/test.ts` tells the test files of the server that they share. */
export const sharedServerVariable = 'TEST_POSTGRES_URL';
/** The migrated database that others are cloned from. */
const template = 'retry_safe_template';

/** A database of one's own. */
export type TestDatabase = {
  readonly url: string;
  drop(): Promise<void>;
};

/**
 * Clones the migrated template under a fresh name. The server is the run's, else (a test file run by itself) one that is
 * started for this process and ends with it.
 */
export async function createTestDatabase(): Promise<TestDatabase> {
  return await newDatabase(template);
}

/** An empty database, to be migrated by the test. */
export async function emptyDatabase(): Promise<TestDatabase> {
  return await newDatabase('template0');
}

async function newDatabase(from: string): Promise<TestDatabase> {
  const server = await templateServer();
  const name = `t_${randomBytes(8).toString('hex')}`;
  await administer(server, (sql) => sql`create database ${sql(name)} template ${sql(from)} strategy file_copy`);
  return {
    url: withDatabase(server, name),
    drop: () => administer(server, (sql) => sql`drop database if exists ${sql(name)} with (force)`),
  };
}

/** A server of one's own in a fresh folder, which a scenario may stop, kill and start again on the same port. */
export type PrivateServer = {
  readonly url: string;
  readonly current: EmbeddedPostgres;
  /** A migrated database on it. */
  createDatabase(): Promise<string>;
  /** Starts it again after a stop or a kill, on the same port. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Stops it and removes its folder. */
  remove(): Promise<void>;
};

/** Starts a server that nobody else uses. */
export async function startPrivateServer(options: Partial<EmbeddedOptions> = {}): Promise<PrivateServer> {
  const dataDir = temporaryFolder();
  let current = await startEmbedded({ fsync: false, ...options, dataDir });
  const { port, url } = current;
  const stop = () => current.stop();
  return {
    url,
    get current() {
      return current;
    },
    async createDatabase() {
      const name = `t_${randomBytes(8).toString('hex')}`;
      await administer(url, (sql) => sql`create database ${sql(name)}`);
      await migrate(withDatabase(url, name));
      return withDatabase(url, name);
    },
    async start() {
      await current.ended;
      current = await startEmbedded({ fsync: false, ...options, dataDir, port });
    },
    stop,
    async remove() {
      await stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** An empty folder below the system's temporary one that every user of the machine can reach. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'retry-safe-'));
  chmodSync(folder, 0o755);
  return folder;
}

let server: Promise<string> | undefined;

/** The URL of a server that has the template. */
function templateServer(): Promise<string> {
  const shared = process.env[sharedServerVariable];
  server ??= shared === undefined ? ownServer() : Promise.resolve(shared);
  return server;
}

async function ownServer(): Promise<string> {
  const dataDir = temporaryFolder();
  const { url } = await startEmbedded({ dataDir, fsync: false });
  // The server itself ends with this process; so late, only the synchronous can be done.
  process.once('exit', () => rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 }));
  await createTemplate(url);
  return url;
}

/** Makes the template on a fresh server. */
export async function createTemplate(url: string): Promise<void> {
  await administer(url, (sql) => sql`create database ${sql(template)}`);
  await migrate(withDatabase(url, template));
}

async function administer(url: string, statement: (sql: postgres.Sql) => postgres.PendingQuery<postgres.Row[]>) {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    await statement(sql);
  } finally {
    await sql.end();
  }
}

function withDatabase(url: string, name: string): string {
  const parsed = new URL(url);
  parsed.pathname = `/${name}`;
  return parsed.href;
}

/** A TCP port of the loopback address that nobody listens on at the moment. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => resolve(port));
    });
  });
}
