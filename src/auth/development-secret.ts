import { randomBytes } from 'node:crypto';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The secret of a first run: made once in the data folder, readable by its owner alone. */
export async function developmentSecret(dataDir: string): Promise<string> {
  const path = join(dataDir, 'auth-secret');
  const existing = await readSecret(path);
  if (existing !== undefined) return existing;
  await mkdir(dataDir, { recursive: true });
  // Written whole under another name and linked: of two processes that start at once one wins and both read the same.
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, randomBytes(32).toString('base64url'), { mode: 0o600 });
  await link(draft, path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  await rm(draft, { force: true });
  return (await readSecret(path)) as string;
}

/** The development secret if it was made already. */
export async function readSecret(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
