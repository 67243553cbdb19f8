import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EmbeddedPostgresError } from './fault.ts';
import { startOf } from './processes.ts';

/** The ownership of a data folder. */
export type Ownership = {
  /** Its last owner died without giving it back: its Postgres may still run. */
  readonly isInherited: boolean;
  giveBack(): void;
};

/**
 * Makes this process the owner of a data folder. The owner is named in a file by pid and start time, so that one who was
 * killed, or whose pid is another's by now, counts no more. Throws when a living process owns the folder.
 */
export function own(dataDir: string): Ownership {
  const file = join(dataDir, 'owner.json');
  const self = JSON.stringify({ pid: process.pid, start: startOf(process.pid) });
  let isInherited = false;
  for (;;) {
    try {
      writeFileSync(file, self, { flag: 'wx' });
      const giveBack = () => {
        if (read(file) === self) rmSync(file, { force: true });
      };
      return { isInherited, giveBack };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const last = read(file);
    const pid = livingOwner(last);
    if (pid !== undefined) throw inUse(dataDir, pid);
    if (last !== undefined) isInherited = removeDead(file, last) || isInherited;
  }
}

/** The error for a folder that another process works on. */
export function inUse(dataDir: string, pid: number): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    `the embedded database in ${dataDir} is in use by process ${pid}: stop that, or set DATA_DIR to another folder`,
  );
}

/** Removes a dead owner's file; false when another process did, whose own file may be in its place by now and is left alone. */
function removeDead(file: string, content: string): boolean {
  const aside = `${file}.${process.pid}`;
  try {
    renameSync(file, aside);
    const isDead = read(aside) === content;
    if (!isDead) linkSync(aside, file);
    return isDead;
  } catch {
    return false;
  } finally {
    rmSync(aside, { force: true });
  }
}

function livingOwner(text: string | undefined): number | undefined {
  try {
    const { pid, start } = JSON.parse(text ?? '') as { pid: number; start: string };
    return startOf(pid) === start ? pid : undefined;
  } catch {
    // Cut off by a crash while it was written.
    return undefined;
  }
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
