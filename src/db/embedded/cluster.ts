import { randomBytes } from 'node:crypto';
import { chownSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Account } from './account.ts';
import type { Binaries } from './binaries.ts';
import { EmbeddedPostgresError, tailOf } from './fault.ts';
import { supervise } from './supervised.ts';

const unfinishedPrefix = 'unfinished-';

/** The superuser, who is the only user. */
export const superuser = 'postgres';

/**
 * The folder of the cluster (Postgres' word for its data folder) in `home`, made by initdb if it is not there. It is made
 * under another name and renamed, so that one is either whole or absent; the password is in it for the same reason.
 */
export async function prepareCluster(
  home: string,
  binaries: Binaries,
  account: Account | undefined,
  fsync: boolean,
): Promise<string> {
  const cluster = join(home, 'cluster');
  const version = read(join(cluster, 'PG_VERSION'));
  if (version === undefined) await initialise(home, cluster, binaries, account, fsync);
  else if (version.trim() !== binaries.major) {
    throw new EmbeddedPostgresError(
      `the database in ${cluster} is of PostgreSQL ${version.trim()}, this is ${binaries.major}: remove the folder to begin anew, or set DATA_DIR to another`,
    );
  }
  return cluster;
}

/** The superuser's password, made with the cluster. */
export function passwordOf(cluster: string): string {
  return readFileSync(join(cluster, 'password'), 'utf8').trim();
}

async function initialise(
  home: string,
  cluster: string,
  binaries: Binaries,
  account: Account | undefined,
  fsync: boolean,
): Promise<void> {
  for (const name of readdirSync(home)) {
    if (name.startsWith(unfinishedPrefix)) rmSync(join(home, name), { recursive: true, force: true });
  }
  const unfinished = join(home, `${unfinishedPrefix}${randomBytes(6).toString('hex')}`);
  const passwordFile = `${unfinished}-password`;
  const log = join(home, 'initdb.log');
  mkdirSync(unfinished, { mode: 0o700 });
  writeFileSync(passwordFile, `${randomBytes(24).toString('base64url')}\n`, { mode: 0o600 });
  if (account !== undefined) for (const path of [unfinished, passwordFile]) chownSync(path, account.uid, account.gid);
  const options = [
    ...['--pgdata', unfinished, '--username', superuser, '--pwfile', passwordFile, '--auth', 'scram-sha-256'],
    // The same order and the same case rules on every machine, whatever its locales.
    ...['--encoding', 'UTF8', '--locale', 'C', '--locale-provider', 'builtin', '--builtin-locale', 'C.UTF-8'],
    ...['--no-instructions', ...(fsync ? [] : ['--no-sync'])],
  ];
  const { code } = await supervise([binaries.initdb, ...options], account, log).ended;
  if (code !== 0) {
    throw new EmbeddedPostgresError(`initdb failed in ${home} (exit code ${code}):${tailOf(read(log) ?? '')}`);
  }
  renameSync(passwordFile, join(unfinished, 'password'));
  renameSync(unfinished, cluster);
  rmSync(log, { force: true });
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
