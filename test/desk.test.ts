import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import test from 'node:test';
import { promisify } from 'node:util';
import { parseConfig } from '../src/config.ts';
import { tenantTables } from '../src/db/tables.ts';
import { judge } from '../src/desk/doctor.ts';
import { startServer, testSecret } from './helpers/server.ts';

const run = promisify(execFile);

/** Runs a script of the project as npm does; answers its output and exit code. */
async function script(name: string, args: readonly string[], env: Record<string, string>) {
  return await run(process.execPath, ['--import', 'tsx', `scripts/${name}.ts`, ...args], {
    env: { ...process.env, AUTH_SECRET: testSecret, ...env },
  }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  );
}

test('forget counts at first, then deletes one tenant’s rows in batches and nobody else’s', async (t) => {
  const server = await startServer(t);
  for (const tenant of ['acme', 'globex']) {
    for (let i = 0; i < 5; i += 1) {
      await server.call('POST /v1/orders', { tenant, key: `k-${i}`, body: { cents: 1, item: 'x' } });
    }
    await server.call('PUT /v1/docs/a', { tenant, body: { title: 'x', body: '' }, headers: { 'if-none-match': '*' } });
  }
  const env = { DATABASE_URL: server.databaseUrl };
  const counted = await script('forget', ['acme'], env);
  assert.equal(counted.code, 0);
  assert.match(counted.stdout, /^orders +5$/m);
  assert.match(counted.stdout, /Nothing was deleted/);
  assert.equal((await server.call('GET /v1/orders')).json.items.length, 5);

  const deleted = await script('forget', ['acme', '--yes', '--batch', '2'], env);
  assert.equal(deleted.code, 0);
  assert.equal((await server.call('GET /v1/orders')).json.items.length, 0);
  assert.equal((await server.call('GET /v1/docs/a')).status, 404);
  assert.equal((await server.call('GET /v1/idempotency-keys/k-1')).status, 404);
  assert.equal((await server.call('GET /v1/orders', { tenant: 'globex' })).json.items.length, 5);
  assert.equal((await server.call('GET /v1/docs/a', { tenant: 'globex' })).status, 200);
});

test('forget reaches every table there is', async (t) => {
  const server = await startServer(t);
  const rows = await server.db.query(
    (sql) => sql<{ table_name: string }[]>`
      select table_name from information_schema.columns where table_schema = 'public' and column_name = 'tenant'`,
  );
  assert.deepEqual([...tenantTables].sort(), rows.map((row) => row.table_name).sort());
});

test('forget says how it is used and refuses what it does not understand', async () => {
  assert.match((await script('forget', ['--help'], {})).stdout, /^Usage: npm run forget/);
  for (const args of [[], ['a', 'b'], ['bad tenant'], ['acme', '--batch', '0'], ['acme', '--nope']]) {
    assert.equal((await script('forget', args, {})).code, 2);
  }
});

test('the primary key of every table begins with the tenant', async (t) => {
  const server = await startServer(t);
  const rows = await server.db.query(
    (sql) => sql<{ table_name: string; first_column: string }[]>`
      select c.relname as table_name, a.attname as first_column
      from pg_index i join pg_class c on c.oid = i.indrelid join pg_namespace n on n.oid = c.relnamespace
      join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]
      where i.indisprimary and n.nspname = 'public'`,
  );
  assert.equal(rows.length, tenantTables.length);
  for (const row of rows) assert.equal(row.first_column, 'tenant', row.table_name);
});

test('doctor finds a sound database sound, and says what to change about one that is not', async (t) => {
  const server = await startServer(t);
  const env = { DATABASE_URL: server.databaseUrl };
  const seen = await script('doctor', ['--json'], env);
  const findings = JSON.parse(seen.stdout) as { verdict: string; what: string }[];
  // The server of the test run gives up durability for speed, and that is what must be found.
  const failed = findings.filter((finding) => finding.verdict === 'fail').map((finding) => finding.what);
  assert.deepEqual(failed, ['fsync is off', 'synchronous_commit is off']);
  assert.equal(seen.code, 1);
  const small = await script('doctor', [], { ...env, DB_POOL_MAX: '500' });
  assert.match(small.stdout, /^fail {2}a process takes up to 501 of \d+ connections: set DB_POOL_MAX to at most/m);
});

test('doctor judges versions, migrations, clocks and retention one by one', () => {
  const facts = {
    version: 180_000,
    settings: {
      max_connections: '100',
      fsync: 'on',
      synchronous_commit: 'on',
      default_transaction_isolation: 'read committed',
      autovacuum: 'on',
    },
    connections: 3,
    clockMs: 1_000_000,
    migrations: 3,
    staleKeys: 0,
    staleJobs: 0,
  };
  const worst = (changed: object, env: Record<string, string> = {}, nowMs = 1_000_000) =>
    judge(parseConfig(env), { ...facts, ...changed }, nowMs, 3)
      .filter((finding) => finding.verdict !== 'ok')
      .map((finding) => `${finding.verdict} ${finding.what}`);
  assert.deepEqual(worst({}), []);
  assert.deepEqual(worst({ version: 140_011 }), ['fail PostgreSQL 14']);
  assert.deepEqual(worst({ migrations: 2 }), ['fail 2 of 3 migrations are applied']);
  assert.deepEqual(worst({ migrations: 4 }), ['warn the database is ahead of this build']);
  assert.deepEqual(worst({}, {}, 1_005_000), ['warn the clocks differ by 5000 ms']);
  assert.deepEqual(worst({}, { IDEMPOTENCY_TTL_S: '60' }), ['warn answers are kept for 60 s']);
  assert.deepEqual(worst({ staleKeys: 2, staleJobs: 1 }), [
    'warn 2 keys have no owner',
    'warn 1 jobs run past their lease',
  ]);
});
