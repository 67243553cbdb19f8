import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertProblem, tagOf } from '../helpers/docs.ts';
import { startServer, type TestServer } from '../helpers/server.ts';
import { testSql } from '../helpers/sql.ts';

async function place(server: TestServer, cents: number, tenant = 'acme'): Promise<string> {
  const placed = await server.call('POST /v1/orders', { tenant, key: `k-${cents}`, body: { cents, item: 'tea' } });
  assert.equal(placed.status, 201, placed.text);
  return placed.json.order_id;
}

test('orders are listed newest first, page by page, each once while others come and go', async (t) => {
  const server = await startServer(t);
  const ids: string[] = [];
  for (let cents = 1; cents <= 5; cents += 1) ids.unshift(await place(server, cents));
  const page = async (query: string) => {
    const answer = await server.call(`GET /v1/orders?${query}`);
    assert.equal(answer.status, 200, answer.text);
    return { ids: answer.json.items.map((item: { order_id: string }) => item.order_id), next: answer.json.next };
  };
  // Those made in one millisecond are ordered by id.
  const all = (await page('limit=100')).ids;
  assert.deepEqual([...all].sort(), [...ids].sort());
  assert.deepEqual(all, [...all].sort().reverse());
  const first = await page('limit=2');
  assert.deepEqual(first.ids, all.slice(0, 2));
  await place(server, 6);
  await testSql(t, server.databaseUrl)`delete from orders where id = ${all[1].slice(4)}::uuid`;
  const second = await page(`limit=2&after=${first.next}`);
  assert.deepEqual(second.ids, all.slice(2, 4));
  assert.deepEqual(await page(`limit=2&after=${second.next}`), { ids: all.slice(4), next: null });
});

test('an order is read with a tag that holds for ever, and only by its own tenant', async (t) => {
  const server = await startServer(t);
  const id = await place(server, 7);
  const read = await server.call(`GET /v1/orders/${id}`);
  assert.deepEqual([read.status, read.json.cents, read.json.item], [200, 7, 'tea']);
  const same = await server.call(`GET /v1/orders/${id}`, { headers: { 'if-none-match': tagOf(read) } });
  assert.deepEqual([same.status, same.text], [304, '']);
  const stale = await server.call(`GET /v1/orders/${id}`, { headers: { 'if-match': '"x"' } });
  assertProblem(stale, 412, 'precondition_failed');
  for (const condition of [{ 'if-none-match': '*' }, { 'if-match': '*' }, {}]) {
    const stranger = { tenant: 'globex', headers: condition };
    assertProblem(await server.call(`GET /v1/orders/${id}`, stranger), 404, 'not_found');
  }
  for (const other of [id.toUpperCase(), id.slice(4), `${id}0`, 'ord_x', 'x']) {
    assertProblem(await server.call(`GET /v1/orders/${other}`), 404, 'not_found');
  }
  assert.deepEqual((await server.call('GET /v1/orders', { tenant: 'globex' })).json, { items: [], next: null });
});
