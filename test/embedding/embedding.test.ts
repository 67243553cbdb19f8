import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { after, before, type TestContext, test } from 'node:test';
import { build as bundle } from 'esbuild';
import { createClient } from '../../src/client/index.ts';
import { migrateKeys } from '../../src/db/migrate.ts';
import { atEnd } from '../helpers/cleanup.ts';
import { emptyDatabase } from '../helpers/database.ts';
import { startFaultProxy } from '../helpers/fault-proxy.ts';
import { freshDatabase, startProcess, testSecret, testToken } from '../helpers/server.ts';
import { testSql } from '../helpers/sql.ts';
import { passKeyCases, type Target } from './key-suite.ts';
import { type Newcomer, unpackAsNewcomer } from './package.ts';

let newcomer: Newcomer;
before(() => {
  newcomer = unpackAsNewcomer();
});
after(() => newcomer.remove());

/** A database with the tables that a file of the page makes, and those of the key. */
async function databaseWith(t: TestContext, file: string): Promise<string> {
  const database = await emptyDatabase();
  atEnd(t, () => database.drop());
  await testSql(t, database.url).unsafe(readFileSync(newcomer.file(file), 'utf8'));
  await migrateKeys(database.url);
  return database.url;
}

const bearer = async (tenant: string) => `Bearer ${await testToken({ tenant })}`;
const user = async (tenant: string) => (tenant === 'acme' ? 'Bearer alice-of-acme' : 'Bearer bob-of-globex');

async function pageTarget(t: TestContext, file: string, tables: string, rest: Partial<Target>): Promise<Target> {
  const databaseUrl = await databaseWith(t, tables);
  return {
    databaseUrl,
    path: '/orders',
    effects: 'shop_orders',
    number: 'cents',
    keys: 'retry_safe.idem',
    body: (cents) => ({ cents }),
    authorization: user,
    start: (within) => startProcess(within, { DATABASE_URL: databaseUrl }, newcomer.file(file)),
    ...rest,
  };
}

const notes: Partial<Target> = {
  path: '/notes',
  effects: 'notes',
  number: 'text',
  body: (number) => ({ text: String(number) }),
  authorization: bearer,
};

test('the reference server passes the key cases', async (t) => {
  const databaseUrl = await freshDatabase(t);
  await passKeyCases(t, {
    databaseUrl,
    path: '/v1/orders',
    effects: 'orders',
    number: 'cents',
    keys: 'idem',
    body: (cents) => ({ cents, item: 'tea' }),
    authorization: bearer,
    isOneStatement: true,
    start: (within) => startProcess(within, { DATABASE_URL: databaseUrl }),
  });
});

test('the server of the page passes the key cases, from the packed library', async (t) => {
  await passKeyCases(t, await pageTarget(t, 'server.ts', 'notes.sql', notes));
});

test('the Express app of the page passes the key cases, from the packed library', async (t) => {
  await passKeyCases(t, await pageTarget(t, 'express-app.ts', 'shop.sql', {}));
});

test('the Fastify app of the page passes the key cases, from the packed library', async (t) => {
  await passKeyCases(t, await pageTarget(t, 'fastify-app.ts', 'shop.sql', {}));
});

test('all code of the page and the types of the package are clean under tsc --strict', () => {
  // With skipLibCheck, as the page has it, only the page's own files would be looked at.
  const faults = newcomer.typeCheck('--skipLibCheck', 'false').split('\n');
  assert.deepEqual(
    faults.filter(
      (line) => line !== '' && !line.startsWith('  ') && !/(?:^|\/)node_modules\/(?!retry-safe\/)/.test(line),
    ),
    [],
  );
});

test('the client of the page makes one note through a proxy that drops the first two answers, and edits it', async (t) => {
  const target = await pageTarget(t, 'server.ts', 'notes.sql', notes);
  const server = await target.start(t);
  const proxy = await startFaultProxy(t, server.url);
  proxy.next({ kind: 'drop_answer' }, { kind: 'drop_answer' });
  const child = spawn(process.execPath, ['--import', 'tsx', newcomer.file('call.ts'), proxy.url], {
    env: { ...process.env, AUTH_SECRET: testSecret },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const { created, edited } = JSON.parse(await text(child.stdout));
  const rows = await testSql(t, target.databaseUrl)`select id, text, version from notes`;
  assert.deepEqual([...rows], [{ id: created.id, text: 'green tea', version: 2 }]);
  assert.deepEqual([created.version, edited.version], [1, 2]);
  assert.deepEqual(
    proxy.passages.map(({ line }) => line.split(' ')[0]),
    ['POST', 'POST', 'POST', 'GET', 'PUT'],
  );
});

test('the agent of docs/client.md does each thing once through a proxy that drops its answers, however often it is run', async (t) => {
  const databaseUrl = await freshDatabase(t);
  const server = await startProcess(t, { DATABASE_URL: databaseUrl });
  const rich = createClient({ baseUrl: server.url, token: await testToken({ scope: 'credits:write' }) });
  await rich.call('addCredits', { body: { amount_micros: 1_000_000_000 } });
  const proxy = await startFaultProxy(t, server.url);
  const args = ['--import', 'tsx', newcomer.file('agent.ts'), proxy.url, await testToken()];
  const run = async () => {
    proxy.next({ kind: 'drop_answer' }, { kind: 'drop_answer' });
    const child = spawn(process.execPath, args, { cwd: newcomer.folder, stdio: ['ignore', 'pipe', 'pipe'] });
    const [told, tries] = await Promise.all([text(child.stdout), text(child.stderr)]);
    assert.notEqual(told, '', tries);
    return { told: JSON.parse(told), tries };
  };
  const first = await run();
  assert.match(first.tries, /^createOrder, try 1: no answer\ncreateOrder, try 2: no answer\ncreateOrder, try 3: 201\n/);
  const { told } = await run();
  assert.deepEqual([told.order, told.job], [first.told.order, first.told.job]);
  assert.deepEqual([first.told.replayed, told.replayed], [true, true]);
  assert.deepEqual([first.told.version, told.version], [2, 3]);
  const [rows] = await testSql(t, databaseUrl)`
    select (select count(*)::int from orders) as orders, (select count(*)::int from jobs) as jobs,
      (select array_length(string_to_array(body, chr(10)), 1) - 1 from docs) as lines`;
  assert.deepEqual({ ...rows }, { orders: 1, jobs: 1, lines: 2 });
});

test('the function of the page keeps the rules of conditional requests, and needs nothing of Node', async (t) => {
  const bundled = newcomer.file('settings.bundle.mjs');
  const entryPoints = [newcomer.file('settings.ts')];
  // For a browser: an import of Node's own modules fails.
  await bundle({ entryPoints, outfile: bundled, bundle: true, format: 'esm', platform: 'browser', logLevel: 'silent' });
  assert.doesNotMatch(readFileSync(bundled, 'utf8'), /\bBuffer\b|\bprocess\b/);
  const { handle } = (await import(bundled)) as {
    handle(request: Request, tenant: string, store: object): Promise<Response>;
  };

  let kept: { version: number; value: unknown } | undefined;
  let faster = async () => {};
  const store = {
    read: async () => kept,
    async write(_tenant: string, expected: number, value: unknown) {
      await faster();
      if ((kept?.version ?? 0) !== expected) return false;
      kept = { version: expected + 1, value };
      return true;
    },
  };
  const ask = (method: string, headers: Record<string, string> = {}, body?: string) =>
    handle(new Request('https://f.test/settings', { method, headers, ...(body && { body }) }), 'acme', store);
  const put = (headers: Record<string, string>, body: string) => ask('PUT', headers, body);

  assert.equal((await ask('GET')).status, 404);
  assert.equal((await put({}, '{}')).status, 428);
  assert.equal((await put({ 'if-match': 'v1' }, '{}')).status, 400);
  const created = await put({ 'if-none-match': '*' }, '{"theme":"dark"}');
  assert.equal(created.status, 201);
  assert.equal((await put({ 'if-none-match': '*' }, '{}')).status, 412);
  const etag = created.headers.get('etag') as string;
  assert.equal((await ask('GET', { 'if-none-match': etag })).status, 304);
  assert.equal((await put({ 'if-match': etag }, '{"a":1,"a":2}')).status, 400);
  const changed = await put({ 'if-match': etag }, '{"theme":"light"}');
  assert.equal(changed.status, 200);
  const stale = await put({ 'if-match': etag }, '{}');
  assert.deepEqual([stale.status, stale.headers.get('etag')], [412, changed.headers.get('etag')]);

  await t.test('a writer that was faster than the read is not written over', async () => {
    faster = async () => {
      kept = { version: 3, value: 'faster' };
    };
    const lost = await put({ 'if-match': changed.headers.get('etag') as string }, '{}');
    assert.equal(lost.status, 412);
    assert.equal((await ask('GET')).headers.get('etag'), lost.headers.get('etag'));
    assert.deepEqual(kept, { version: 3, value: 'faster' });
  });
});
