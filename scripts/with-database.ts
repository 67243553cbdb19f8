import { resolve } from 'node:path';
import { type Config, ConfigError } from '../src/config.ts';
import { startEmbedded } from '../src/db/embedded.ts';
import { type Database, openDatabase } from '../src/db/pool.ts';

/** Runs `work` on DATABASE_URL, or on the embedded database of DATA_DIR (whose server must not be running), and closes it. */
export async function withDatabase<T>(config: Config, work: (db: Database, url: string) => Promise<T>): Promise<T> {
  const embedded =
    config.databaseUrl === undefined ? await startEmbedded({ dataDir: resolve(config.dataDir) }) : undefined;
  const url = config.databaseUrl ?? (embedded as { url: string }).url;
  const db = openDatabase({ url, max: 2, prepare: config.dbPrepare, queryTimeoutMs: 60_000 });
  try {
    return await work(db, url);
  } finally {
    await db.close(1_000);
    await embedded?.stop();
  }
}

/** Ends a script with one sentence: 2 for wrong words, 1 for what went wrong. */
export function failWith(error: unknown): never {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(error instanceof ConfigError ? 2 : 1);
}
