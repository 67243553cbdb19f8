import { spawnSync } from 'node:child_process';
import { EmbeddedPostgresError } from './fault.ts';

/** A user of this machine by number. */
export type Account = { readonly uid: number; readonly gid: number };

/**
 * Whom Postgres runs as: undefined is whoever we are. It refuses to run as root, so root needs the system user `postgres`,
 * which is made when it is missing.
 */
export function postgresAccount(): Account | undefined {
  if (process.getuid?.() !== 0) return undefined;
  return lookUp() ?? create();
}

/** Whether the account can execute the program at a path or pass through the folder at it. */
export function canReach(account: Account, path: string): boolean {
  return spawnSync('/bin/sh', ['-c', 'test -x "$1"', 'sh', path], { ...account, cwd: '/' }).status === 0;
}

function lookUp(): Account | undefined {
  const [uid, gid] = ['-u', '-g'].map((flag) => {
    const { status, stdout } = spawnSync('id', [flag, 'postgres'], { encoding: 'utf8' });
    return status === 0 ? Number(stdout) : undefined;
  });
  return uid === undefined || gid === undefined ? undefined : { uid, gid };
}

function create(): Account {
  // The first is of Debian, Red Hat and their like, the second of Alpine's busybox.
  const commands = [
    ['useradd', '--system', '--user-group', '--no-create-home', '--shell', '/bin/false', 'postgres'],
    ['adduser', '-S', '-D', '-H', 'postgres'],
  ];
  for (const [command, ...args] of commands as [string, ...string[]][]) {
    spawnSync(command, args);
    const account = lookUp();
    if (account !== undefined) return account;
  }
  throw new EmbeddedPostgresError(
    'Postgres does not run as root, and the user "postgres" could not be created: start as another user, run "useradd --system postgres", or set DATABASE_URL',
  );
}
