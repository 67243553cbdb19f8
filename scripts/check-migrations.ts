import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';

/*
 * Generates migrations into a copy of the folder: if a file comes of it, the schema has changed and its migration has not
 * been written (`npm run db:generate -- --name what-it-does`; for the tables of the key, `db:generate:keys` as well).
 */

/** The folders of migrations, with the schema and the script that each is generated from and by. */
const folders = [
  ['src/db/migrations', './src/db/schema.ts', 'db:generate'],
  ['src/db/key-migrations', './src/db/key-schema.ts', 'db:generate:keys'],
] as const;

for (const [folder, schema, script] of folders) {
  const scratch = mkdtempSync(join(tmpdir(), 'retry-safe-migrations-'));
  try {
    cpSync(folder, scratch, { recursive: true });
    const before = readdirSync(scratch, { recursive: true }).length;
    // drizzle-kit takes paths relative to the working directory only.
    const options = ['--dialect', 'postgresql', '--schema', schema, '--out', relative('.', scratch)];
    const kit = join(dirname(createRequire(import.meta.url).resolve('drizzle-kit')), 'bin.cjs');
    const { status, stdout, stderr } = spawnSync(process.execPath, [kit, 'generate', ...options], { encoding: 'utf8' });
    const after = readdirSync(scratch, { recursive: true }).length;
    if (status !== 0) {
      process.stderr.write(`drizzle-kit generate failed:\n${stdout}${stderr}`);
      process.exitCode = 1;
    } else if (after !== before) {
      process.stderr.write(`${schema} and ${folder} disagree: run "npm run ${script} -- --name what-it-does"\n`);
      process.exitCode = 1;
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
