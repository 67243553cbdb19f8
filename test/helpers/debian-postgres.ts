import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { type Account, postgresAccount } from '../../src/db/embedded/account.ts';
import { migrate } from '../../src/db/migrate.ts';
import { freePort, temporaryFolder } from './database.ts';

/** The oldest version that is supported, as Debian packs it. */
const bin = '/usr/lib/postgresql/15/bin';

/** Why a test that needs PostgreSQL 15 is skipped; false when it is there. */
export const noPostgres15 = existsSync(join(bin, 'postgres')) ? false : 'no postgresql-15';

/** A PostgreSQL 15 of the system. */
export type DebianPostgres = {
  readonly port: number;
  readonly url: string;
  /** An empty or a migrated database. */
  createDatabase(name: string, isMigrated?: boolean): Promise<string>;
  /** A server that follows this one: a base backup that goes on from its write-ahead log. */
  startStandby(name: string): Promise<DebianPostgres>;
  /** Ends a standby's following: it takes writes from now on. */
  promote(): Promise<void>;
  /** Kills it with everything it has, as a power cut does. */
  kill(): Promise<void>;
  stop(): Promise<void>;
};

/** Starts one on a fresh cluster; it is gone after `stop`. */
export async function startPostgres15(settings: Readonly<Record<string, string>> = {}): Promise<DebianPostgres> {
  const folder = temporaryFolder();
  const account = postgresAccount();
  if (account !== undefined) chownSync(folder, account.uid, account.gid);
  const data = join(folder, 'data');
  const initdb = ['--pgdata', data, '--username', 'postgres', '--auth', 'trust', '--encoding', 'UTF8', '--locale', 'C'];
  run('initdb', [...initdb, '--no-sync'], account);
  return await start(folder, data, settings, account);
}

async function start(
  folder: string,
  data: string,
  settings: Readonly<Record<string, string>>,
  account: Account | undefined,
): Promise<DebianPostgres> {
  const port = await freePort();
  const all = {
    port: String(port),
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    fsync: 'off',
    ...settings,
  };
  const args = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const logFile = `${data}.log`;
  const log = openSync(logFile, 'w');
  const child = spawn(join(bin, 'postgres'), ['-D', data, ...args], {
    ...account,
    cwd: '/',
    stdio: ['ignore', log, log],
    env: { PATH: process.env.PATH ?? '', LC_ALL: 'C', TZ: 'UTC' },
  });
  // Should the tests end before it, it must not stay.
  const onExit = () => child.kill('SIGQUIT');
  process.once('exit', onExit);
  const exited = once(child, 'exit').finally(() => process.off('exit', onExit));
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  await isUp(child, url, logFile);
  return {
    port,
    url,
    async createDatabase(name, isMigrated = true) {
      await withSql(url, (sql) => sql`create database ${sql(name)}`);
      const database = `postgres://postgres@127.0.0.1:${port}/${name}`;
      if (isMigrated) await migrate(database);
      return database;
    },
    async startStandby(name) {
      const standby = join(folder, name);
      mkdirSync(standby, { mode: 0o700 });
      if (account !== undefined) chownSync(standby, account.uid, account.gid);
      const source = `host=127.0.0.1 port=${port} user=postgres application_name=${name}`;
      run('pg_basebackup', ['-D', standby, '-d', source, '-R', '-X', 'stream', '--no-sync', '-c', 'fast'], account);
      return await start(folder, standby, {}, account);
    },
    async promote() {
      await withSql(url, (sql) => sql`select pg_promote(true, 30)`);
    },
    async kill() {
      // Its workers notice that it is gone and end by themselves.
      child.kill('SIGKILL');
      await exited;
    },
    async stop() {
      child.kill('SIGQUIT');
      await exited;
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

function run(program: string, args: readonly string[], account: Account | undefined): void {
  const { status, stderr } = spawnSync(join(bin, program), args, { ...account, cwd: '/', encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program} failed:\n${stderr}`);
}

async function isUp(child: ChildProcess, url: string, logFile: string): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`postgres ended:\n${readFileSync(logFile, 'utf8')}`);
    const isAnswering = await withSql(url, (sql) => sql`select 1`).then(
      () => true,
      () => false,
    );
    if (isAnswering) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function withSql(url: string, statement: (sql: postgres.Sql) => postgres.PendingQuery<postgres.Row[]>) {
  const sql = postgres(url, { max: 1, onnotice: () => {}, connect_timeout: 5 });
  try {
    await statement(sql);
  } finally {
    await sql.end({ timeout: 1 });
  }
}
