import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exchange } from '../helpers/raw-socket.ts';
import { startServer } from '../helpers/server.ts';
import { testSql } from '../helpers/sql.ts';
import { createDoor, createStage } from '../helpers/stage.ts';

const body = { cents: 1, note: 'secret of the body' };

test('a key tells its state, its attempt, its times and where its answer lies, never the stored body', async (t) => {
  const stage = createStage();
  const server = await startServer(t, { procedures: stage.procedures });
  const sql = testSql(t, server.databaseUrl);
  const state = async () => {
    const { status, json, text } = await server.call('GET /v1/idempotency-keys/k');
    assert.equal(status, 200, text);
    assert.doesNotMatch(text, /secret|order_id/);
    const { created_at, expires_at, ...rest } = json;
    assert.equal(Date.parse(expires_at) - Date.parse(created_at), 86_400_000);
    return rest;
  };
  const send = () => server.call('POST /v1/test/slow', { key: 'k', body });

  assert.equal((await server.call('GET /v1/idempotency-keys/k')).json.code, 'not_found');
  const door = createDoor();
  stage.on('k', { prepare: door.pass });
  const running = send();
  await door.arrived;
  assert.deepEqual(await state(), { key: 'k', state: 'in_progress', attempt: 1, status: null, location: null });
  door.fail(new Error('fails'));
  assert.equal((await running).status, 500);
  assert.deepEqual(await state(), { key: 'k', state: 'released', attempt: 1, status: null, location: null });
  stage.on('k', {});
  const done = await send();
  const location = done.headers.get('location');
  assert.deepEqual(await state(), { key: 'k', state: 'done', attempt: 2, status: 201, location });
  await send();
  assert.deepEqual(await state(), { key: 'k', state: 'done', attempt: 2, status: 201, location });
  await sql`update idem set created_at = created_at - interval '2 days', expires_at = expires_at - interval '2 days'`;
  assert.deepEqual(await state(), { key: 'k', state: 'expired', attempt: 2, status: null, location: null });
});

test('the path holds any key percent-encoded; whether it never was or is another tenant’s, the answer is the same', async (t) => {
  const server = await startServer(t);
  const keys = ['q83vASNFZ4mrze8BI0VniQ+/', 'a%2Fb', '.', '..', '?x#y', "~!*'();:@&=$,[]{}|\\^`<>", 'k'.repeat(255)];
  for (const key of keys) {
    const made = await server.call('POST /v1/orders', { key, body: { cents: 1, item: 'x' } });
    assert.equal(made.status, 201, key);
    // Every byte escaped, so that no client takes the dots for steps.
    const path = [...key].map((c) => `%${c.charCodeAt(0).toString(16).padStart(2, '0')}`).join('');
    const get = (tenant: string) => exchange(t, server.url, { line: `GET /v1/idempotency-keys/${path}`, tenant });
    const read = await get('acme');
    assert.equal(read.status, 200, key);
    assert.equal(read.json.key, key);
    assert.equal((await get('globex')).status, 404, key);
  }
  const theirs = await server.call('GET /v1/idempotency-keys/k-none', { tenant: 'globex' });
  const never = await server.call('GET /v1/idempotency-keys/k-none');
  const strip = ({ trace_id: _, ...rest }: Record<string, unknown>) => rest;
  assert.deepEqual(strip(theirs.json), strip(never.json));
  for (const path of ['%00', '%ff', 'a%20b', '%22%22', 'k'.repeat(256), '%C3%A9', '']) {
    assert.equal((await server.call(`GET /v1/idempotency-keys/${path}`)).status, 404, path);
  }
});
