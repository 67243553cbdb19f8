import { spawn, spawnSync } from 'node:child_process';
import { chownSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { postgresAccount } from '../../src/db/embedded/account.ts';
import { freePort, temporaryFolder } from './database.ts';

/** Why a test that needs PgBouncer is skipped; false when it is there. */
export const noPgBouncer = spawnSync('pgbouncer', ['--version']).status !== 0 && 'no pgbouncer';

/** A PgBouncer in transaction mode. */
export type PgBouncer = {
  /** The database of the given URL through it. */
  through(url: string): string;
  stop(): Promise<void>;
};

/** Starts a PgBouncer before the server of the given URL that lends `poolSize` of its sessions, a transaction at a time. */
export async function startPgBouncer(target: string, poolSize: number): Promise<PgBouncer> {
  const { hostname, port: targetPort, username, password } = new URL(target);
  const folder = temporaryFolder();
  const port = await freePort();
  const files = { config: join(folder, 'pgbouncer.ini'), users: join(folder, 'users.txt') };
  writeFileSync(files.users, `"${username}" "${decodeURIComponent(password)}"\n`, { mode: 0o600 });
  writeFileSync(
    files.config,
    `[databases]
* = host=${hostname} port=${targetPort}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${files.users}
pool_mode = transaction
default_pool_size = ${poolSize}
max_client_conn = 200
`,
  );
  const account = postgresAccount();
  if (account !== undefined) for (const file of Object.values(files)) chownSync(file, account.uid, account.gid);
  const child = spawn('pgbouncer', [files.config], { ...account, cwd: '/', stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => {
    said += chunk;
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  while (!(await accepts(port))) {
    if (child.exitCode !== null) throw new Error(`pgbouncer ended:\n${said}`);
    await sleep(20);
  }
  return {
    through(url) {
      const through = new URL(url);
      through.port = String(port);
      return through.href;
    },
    async stop() {
      child.kill('SIGKILL');
      await exited;
      rmSync(folder, { recursive: true });
    },
  };
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(port, '127.0.0.1', () => {
      probe.destroy();
      resolve(true);
    });
    probe.once('error', () => resolve(false));
  });
}
