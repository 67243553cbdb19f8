import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startServer } from '../helpers/server.ts';
import { testSql } from '../helpers/sql.ts';
import { createDoor, createStage } from '../helpers/stage.ts';

test("the chapter's first program over HTTP: six requests, their six answers and three orders", async (t) => {
  const stage = createStage();
  const server = await startServer(t, { procedures: stage.procedures });
  const sql = testSql(t, server.databaseUrl);
  const body = { cents: 3_000, item: 'pro-plan' };
  const send = (key: string, options: { tenant?: string; body?: unknown } = {}) =>
    server.call('POST /v1/orders', { key, body, ...options });

  const first = await send('k-1');
  assert.equal(first.status, 201);
  assert.equal(first.headers.get('idempotent-replayed'), 'false');
  assert.equal(first.headers.get('location'), `/v1/orders/${first.json.order_id}`);
  assert.equal(first.json.cents, 3_000);

  const again = await send('k-1');
  assert.equal(again.status, 201);
  assert.equal(again.headers.get('idempotent-replayed'), 'true');
  assert.equal(again.json.order_id, first.json.order_id);
  assert.equal(again.text, first.text);

  const otherBody = await send('k-1', { body: { cents: 9_900, item: 'pro-plan' } });
  assert.equal(otherBody.status, 409);
  assert.equal(otherBody.json.code, 'idempotency_key_reused');
  assert.deepEqual(otherBody.json.differs, ['body']);

  const otherTenant = await send('k-1', { tenant: 'globex' });
  assert.equal(otherTenant.status, 201);
  assert.equal(otherTenant.headers.get('idempotent-replayed'), 'false');
  assert.notEqual(otherTenant.json.order_id, first.json.order_id);

  const otherKey = await send('k-2');
  assert.equal(otherKey.status, 201);
  assert.notEqual(otherKey.json.order_id, first.json.order_id);

  const door = createDoor();
  stage.on('k-3', { prepare: door.pass });
  const running = server.call('POST /v1/test/slow', { key: 'k-3', body: { cents: 1 } });
  await door.arrived;
  const duplicate = await server.call('POST /v1/test/slow', { key: 'k-3', body: { cents: 1 } });
  assert.equal(duplicate.status, 409);
  assert.equal(duplicate.json.code, 'request_in_progress');

  const orders = await sql<{ tenant: string; id: string; cents: number }[]>`
    select tenant, 'ord_' || replace(id::text, '-', '') as id, cents from orders order by created_at, id`;
  assert.deepEqual(
    orders.map((order) => ({ ...order })),
    [
      { tenant: 'acme', id: first.json.order_id, cents: 3_000 },
      { tenant: 'globex', id: otherTenant.json.order_id, cents: 3_000 },
      { tenant: 'acme', id: otherKey.json.order_id, cents: 3_000 },
    ],
  );
  door.open();
  assert.equal((await running).status, 201);
});
