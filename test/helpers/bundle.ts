import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundleProgram } from '../../bench/stage/bundle.ts';

/** The bundle of a program, made once in the temporary folder of a test run and shared by its test files. */
export async function sharedBundle(entry: string): Promise<string> {
  const name = `program-${createHash('sha256').update(entry).digest('hex').slice(0, 16)}.mjs`;
  const path = join(tmpdir(), name);
  if (!existsSync(path)) {
    // Whole under another name first: two test files may want it at the same moment.
    await rename(await bundleProgram(entry, tmpdir(), `${process.pid}-${name}`), path);
  }
  return path;
}
