import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Account, canReach, postgresAccount } from './embedded/account.ts';
import { findBinaries } from './embedded/binaries.ts';
import { passwordOf, prepareCluster, superuser } from './embedded/cluster.ts';
import { EmbeddedPostgresError, tailOf } from './embedded/fault.ts';
import { own } from './embedded/owner.ts';
import { awaitPredecessor, readLockFile } from './embedded/predecessor.ts';
import { isPostmasterOf, pollUntil } from './embedded/processes.ts';
import { type Supervised, supervise } from './embedded/supervised.ts';

export { EmbeddedPostgresError } from './embedded/fault.ts';

/** Where root keeps what the user `postgres` can't reach in a private checkout. */
const rootsElsewhere = '/var/lib/retry-safe';
/** Milliseconds until Postgres must be ready; recovery after a crash may take long. */
const startLimitMs = 60_000;
/** Milliseconds a shutdown may take before it is pressed for. */
const stopLimitMs = 5_000;
/** Starts tried: another program may take a free port between our look and Postgres' bind. */
const startTries = 5;
/** Milliseconds between them. */
const startPauseMs = 200;
/** What Postgres says (in English: the cluster's locale is C) when the obstacle may be gone in a moment: the port, or a killed predecessor's last workers. */
const passing = /Address already in use|pre-existing shared memory block/;

export type EmbeddedOptions = {
  /** The folder of the cluster, its lock and its log; made when it is missing. */
  readonly dataDir: string;
  /** False gives up safety against power loss for speed (tests). */
  readonly fsync?: boolean;
  /** Further settings of postgresql.conf by name. */
  readonly settings?: Readonly<Record<string, string>>;
  /** A fixed port; without one, a free one at each start. */
  readonly port?: number;
  /** Told in a sentence when the data had to go elsewhere. */
  readonly onNotice?: (sentence: string) => void;
};

export type EmbeddedPostgres = {
  readonly url: string;
  readonly port: number;
  /** The postmaster's. */
  readonly pid: number;
  /** Where the cluster is. */
  readonly cluster: string;
  /** Settles when Postgres has ended, for whatever reason. */
  readonly ended: Promise<void>;
  /** Shuts down (fast: sessions are ended, everything is written) and waits until no process is left. */
  stop(): Promise<void>;
};

/**
 * Starts a real PostgreSQL from an npm package on 127.0.0.1, making its cluster the first time. It ends when this process
 * does, however that dies, and it does not see a terminal's Ctrl-C. Throws EmbeddedPostgresError with a sentence to show.
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  if (process.platform === 'win32') {
    throw new EmbeddedPostgresError(
      'the embedded Postgres needs Linux or macOS: set DATABASE_URL to a PostgreSQL 15 or newer',
    );
  }
  const dataDir = resolve(options.dataDir);
  mkdirSync(dataDir, { recursive: true });
  const account = postgresAccount();
  const ownership = own(dataDir);
  try {
    const binaries = findBinaries(account, rootsElsewhere);
    const home = homeOf(dataDir, account, options.onNotice);
    const cluster = await prepareCluster(home, binaries, account, options.fsync ?? true);
    await awaitPredecessor(dataDir, cluster, ownership.isInherited);
    const { postgres, port } = await startOnSomePort(binaries.postgres, cluster, home, account, options);
    postgres.unref();
    const ended = postgres.ended.then(ownership.giveBack, ownership.giveBack);
    return {
      url: `postgres://${superuser}:${passwordOf(cluster)}@127.0.0.1:${port}/postgres`,
      port,
      pid: readLockFile(cluster)?.pid ?? 0,
      cluster,
      ended,
      stop: () => stop(postgres),
    };
  } catch (error) {
    ownership.giveBack();
    throw error;
  }
}

/** The folder of the cluster: the data folder, or for root one that the user `postgres` can reach. */
function homeOf(dataDir: string, account: Account | undefined, onNotice?: (sentence: string) => void): string {
  if (account === undefined || canReach(account, dataDir)) return dataDir;
  // The folder is ours to open, the ones above it are not. Its files have modes of their own.
  if (canReach(account, dirname(dataDir))) {
    chmodSync(dataDir, (statSync(dataDir).mode & 0o777) | 0o011);
    return dataDir;
  }
  const home = join(rootsElsewhere, createHash('sha256').update(dataDir).digest('hex').slice(0, 16));
  mkdirSync(home, { recursive: true, mode: 0o755 });
  onNotice?.(`the database is kept in ${home}: the user "postgres", as whom it runs, can't reach ${dataDir}`);
  return home;
}

async function startOnSomePort(
  program: string,
  cluster: string,
  home: string,
  account: Account | undefined,
  options: EmbeddedOptions,
): Promise<{ postgres: Supervised; port: number }> {
  const log = join(home, 'postgres.log');
  for (let tries = 1; ; tries += 1) {
    const port = options.port ?? (await freePort());
    const postgres = supervise([program, '-D', cluster, ...settingsOf(port, options)], account, log);
    const isReady = () => postgres.isRunning && isUp(cluster);
    await pollUntil(() => isReady() || !postgres.isRunning, startLimitMs);
    if (isReady()) return { postgres, port };
    await stop(postgres);
    const said = readFileSync(log, 'utf8');
    if (tries === startTries || !passing.test(said)) {
      throw new EmbeddedPostgresError(`the embedded Postgres did not start in ${home}:${tailOf(said)}`);
    }
    await sleep(startPauseMs);
  }
}

/** The lock file of a killed predecessor may still say ready: only a living postmaster's word counts. */
function isUp(cluster: string): boolean {
  const lock = readLockFile(cluster);
  return lock?.status === 'ready' && isPostmasterOf(lock.pid, cluster);
}

function settingsOf(port: number, options: EmbeddedOptions): string[] {
  const settings: Record<string, string> = {
    port: String(port),
    listen_addresses: '127.0.0.1',
    // The path of a socket file may be longer than the system allows.
    unix_socket_directories: '',
    max_connections: '200',
    shared_buffers: '128MB',
    max_wal_size: '1GB',
    timezone: 'UTC',
    // Failed statements are the server's to log, without their values.
    log_min_messages: 'log',
    log_min_error_statement: 'panic',
    log_checkpoints: 'off',
    ...(options.fsync === false ? { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' } : {}),
    ...options.settings,
  };
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

async function stop(postgres: Supervised): Promise<void> {
  const isGone = () => !postgres.isRunning;
  if (isGone()) return;
  for (const signal of ['INT', 'QUIT'] as const) {
    postgres.signal(signal);
    if (await endsWithin(postgres, stopLimitMs)) return;
  }
  postgres.kill();
  await endsWithin(postgres, stopLimitMs);
}

async function endsWithin(postgres: Supervised, limitMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, limitMs, false);
  });
  const gone = postgres.ended.then(
    () => true,
    () => true,
  );
  const answer = await Promise.race([gone, late]);
  clearTimeout(timer);
  return answer;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => resolve(port));
    });
  });
}
