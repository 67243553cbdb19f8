import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { parseConfig } from '../src/config.ts';
import { examine } from '../src/desk/doctor.ts';
import { failWith, withDatabase } from './with-database.ts';

const usage = `Usage: npm run doctor [-- --json]

Checks configuration, database version and settings, clock, migrations, and the pool against max_connections, and says what
to change. Exit code 1 when something must be changed. Changes nothing itself.
  --json    one JSON array of findings

The database is DATABASE_URL, or the embedded one in DATA_DIR (stop npm start first).
`;

function readArguments() {
  try {
    return parseArgs({
      options: { json: { type: 'boolean', default: false }, help: { type: 'boolean', short: 'h', default: false } },
    }).values;
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${usage}`);
    process.exit(2);
  }
}

const options = readArguments();
if (options.help) {
  process.stdout.write(usage);
  process.exit(0);
}
try {
  const config = parseConfig(process.env);
  const journal = await readFile(new URL('../src/db/migrations/meta/_journal.json', import.meta.url), 'utf8');
  const known = (JSON.parse(journal) as { entries: unknown[] }).entries.length;
  const findings = await withDatabase(config, (db) => examine(config, db, known));
  if (options.json) process.stdout.write(`${JSON.stringify(findings)}\n`);
  else {
    for (const { verdict, what, advice } of findings) {
      process.stdout.write(`${verdict.padEnd(4)}  ${what}${advice === undefined ? '' : `: ${advice}`}\n`);
    }
  }
  process.exit(findings.some((finding) => finding.verdict === 'fail') ? 1 : 0);
} catch (error) {
  failWith(error);
}
