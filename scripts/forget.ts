import { parseArgs } from 'node:util';
import { isTenant } from '../src/auth/principal.ts';
import { parseConfig } from '../src/config.ts';
import { countTenant, forgetOnce } from '../src/desk/forget.ts';
import { failWith, withDatabase } from './with-database.ts';

const usage = `Usage: npm run forget -- TENANT [--yes] [--batch ROWS]

Deletes everything a tenant has: keys, orders, documents, jobs and their events, ledger, balance, rate-limit bucket.
Without --yes it only counts (a dry run). Stop the tenant's tokens first: what is written meanwhile may stay.
  --yes          delete
  --batch ROWS   rows a statement, 1 to 100000; default: 1000

The database is DATABASE_URL, or the embedded one in DATA_DIR (stop npm start first).
`;

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        yes: { type: 'boolean', default: false },
        batch: { type: 'string', default: '1000' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${usage}`);
    process.exit(2);
  }
}

const { values, positionals } = readArguments();
if (values.help) {
  process.stdout.write(usage);
  process.exit(0);
}
const [tenant] = positionals;
const batch = Number(values.batch);
if (positionals.length !== 1 || !isTenant(tenant) || !Number.isInteger(batch) || batch < 1 || batch > 100_000) {
  process.stderr.write(usage);
  process.exit(2);
}

let interrupted = false;
process.on('SIGINT', () => {
  interrupted = true;
});

try {
  await withDatabase(parseConfig(process.env), async (db) => {
    const counted = await countTenant(db, tenant);
    for (const { table, rows } of counted) process.stdout.write(`${table.padEnd(12)} ${rows}\n`);
    if (!values.yes) {
      process.stdout.write('Nothing was deleted: add --yes to delete these rows.\n');
      return;
    }
    for (const { table, rows } of counted) {
      let deleted = 0;
      for (;;) {
        const once = interrupted ? 0 : await forgetOnce(db, tenant, table, batch);
        if (once === 0) break;
        deleted += once;
        process.stdout.write(`\r${table.padEnd(12)} ${deleted} of ${Math.max(rows, deleted)} deleted`);
      }
      if (deleted > 0) process.stdout.write('\n');
    }
    if (interrupted) throw new Error('Interrupted: run it again to delete the rest.');
    process.stdout.write('Everything of this tenant is deleted.\n');
  });
  process.exit(0);
} catch (error) {
  failWith(error);
}
