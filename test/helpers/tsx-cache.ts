import { mkdirSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Lets programs whose temporary folder is `folder` find what tsx has transformed already: else each start does it all again. */
export function shareTsxCache(folder: string): void {
  const name = `tsx-${process.geteuid?.() ?? ''}`;
  mkdirSync(join(tmpdir(), name), { recursive: true });
  symlinkSync(join(tmpdir(), name), join(folder, name));
}
