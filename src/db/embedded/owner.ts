import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EmbeddedPostgresError } from './fault.ts';
import { startOf } from './processes.ts';

/**
 * Makes this process the owner of a data folder; the answer gives it back. The owner is named in a file by pid and start
 * time, so that one who was killed, or whose pid is another's now, counts no more. Throws when a living process owns it.
 *
 * Two that remove the same dead owner at once may both believe to be the owner: Postgres' own lock then refuses one of them.
 */
export function own(dataDir: string): () => void {
  const file = join(dataDir, 'owner.json');
  const self = JSON.stringify({ pid: process.pid, start: startOf(process.pid) });
  for (;;) {
    try {
      writeFileSync(file, self, { flag: 'wx' });
      return () => {
        if (read(file) === self) rmSync(file, { force: true });
      };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const pid = livingOwner(read(file));
    if (pid !== undefined) throw inUse(dataDir, pid);
    rmSync(file, { force: true });
  }
}

/** The error for a folder that another process works on. */
export function inUse(dataDir: string, pid: number): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    `the embedded database in ${dataDir} is in use by process ${pid}: stop that, or set DATA_DIR to another folder`,
  );
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
