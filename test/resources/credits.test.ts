import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startServer, type TestServer } from '../helpers/server.ts';
import { testSql } from '../helpers/sql.ts';

const scope = 'credits:write';
const topUp = (server: TestServer, key: string, amount_micros: unknown, tenant = 'acme') =>
  server.call('POST /v1/credits', { tenant, scope, key, body: { amount_micros } });

test('a top-up sent twice under one key is one entry, answered byte for byte', async (t) => {
  const server = await startServer(t);
  const first = await topUp(server, 'c1', 5_000);
  const again = await topUp(server, 'c1', 5_000);
  assert.equal(first.status, 201);
  assert.equal(again.text, first.text);
  assert.equal(again.headers.get('idempotent-replayed'), 'true');
  assert.match(first.json.entry_id, /^led_[0-9a-f]{32}$/);
  assert.deepEqual([first.json.kind, first.json.amount_micros, first.json.source_type], ['credit', 5_000, 'credit']);
  const { json } = await server.call('GET /v1/ledger');
  assert.deepEqual(json, { balance_micros: 5_000, held_micros: 0, items: [first.json], next: null });
});

test('a token without the scope credits:write adds nothing', async (t) => {
  const server = await startServer(t);
  const refused = await server.call('POST /v1/credits', { key: 'c1', body: { amount_micros: 5 } });
  assert.equal(refused.status, 403);
  assert.equal(refused.json.code, 'forbidden');
  assert.equal((await server.call('GET /v1/ledger')).json.balance_micros, 0);
});

test('a top-up is a whole positive number of micros that the balance can still count, else 422', async (t) => {
  const server = await startServer(t);
  for (const amount of [0, -1, 1.5, '5', null, 1_000_000_000_001]) {
    const refused = await topUp(server, 'bad', amount);
    assert.deepEqual([refused.status, refused.json.code], [422, 'invalid_body'], JSON.stringify(amount));
  }
  assert.equal((await topUp(server, 'bad', 1)).status, 201, 'the key was never occupied');
  await testSql(t, server.databaseUrl)`update balances set balance_micros = 9007199254740990`;
  assert.equal((await topUp(server, 'last', 1)).status, 201);
  const full = await topUp(server, 'full', 1);
  assert.deepEqual([full.status, full.json.issues[0].path], [422, '/amount_micros']);
  assert.equal((await server.call('GET /v1/ledger')).json.balance_micros, Number.MAX_SAFE_INTEGER);
});

test('the ledger pages from the newest entry on, and its tag tells every change', async (t) => {
  const server = await startServer(t);
  for (let i = 1; i <= 5; i += 1) await topUp(server, `c${i}`, i);
  const first = await server.call('GET /v1/ledger?limit=2');
  assert.deepEqual(
    first.json.items.map((item: { amount_micros: number }) => item.amount_micros),
    [5, 4],
  );
  await topUp(server, 'c6', 6);
  const second = await server.call(`GET /v1/ledger?limit=2&after=${first.json.next}`);
  assert.deepEqual(
    second.json.items.map((item: { amount_micros: number }) => item.amount_micros),
    [3, 2],
  );
  const all = await server.call('GET /v1/ledger');
  const etag = all.headers.get('etag') as string;
  const same = await server.call('GET /v1/ledger', { headers: { 'if-none-match': etag } });
  assert.equal(same.status, 304);
  // The page's entries stay, the balances beside them move.
  await testSql(t, server.databaseUrl)`update balances set balance_micros = balance_micros - 1, held_micros = 1`;
  const moved = await server.call('GET /v1/ledger', { headers: { 'if-none-match': etag } });
  assert.equal(moved.status, 200);
});

test("a tenant sees its own ledger only, and no two tenants' empty ledgers share a tag", async (t) => {
  const server = await startServer(t);
  const [acme, globex] = await Promise.all([
    server.call('GET /v1/ledger'),
    server.call('GET /v1/ledger', { tenant: 'globex' }),
  ]);
  assert.notEqual(acme.headers.get('etag'), globex.headers.get('etag'));
  await topUp(server, 'c1', 7);
  const other = await server.call('GET /v1/ledger', { tenant: 'globex' });
  assert.deepEqual(other.json, { balance_micros: 0, held_micros: 0, items: [], next: null });
});
