import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClient } from '../../src/client/index.ts';
import { startFaultProxy } from '../helpers/fault-proxy.ts';
import { freshDatabase, startProcess, testToken } from '../helpers/server.ts';
import { countOrders, testSql, until } from '../helpers/sql.ts';

test('a call whose server is killed before the answer is read gets its order from the server’s successor, once', async (t) => {
  const DATABASE_URL = await freshDatabase(t);
  const sql = testSql(t, DATABASE_URL);
  const [first, second] = await Promise.all([startProcess(t, { DATABASE_URL }), startProcess(t, { DATABASE_URL })]);
  const proxy = await startFaultProxy(t, first.url);
  const client = createClient({ baseUrl: proxy.url, token: await testToken(), patience: { backOffMs: 10 } });

  proxy.next({ kind: 'hang', what: 'answer' });
  let seen = () => {};
  const arrived = new Promise<void>((resolve) => {
    seen = resolve;
  });
  const running = client.call('createOrder', { body: { cents: 5, item: 'tea' } }, { onAttempt: seen });
  await until(() => proxy.passages.length === 1);
  await proxy.passages[0]?.answered;
  await first.end('SIGKILL');
  // The address is dead for one try; then it is the successor's.
  proxy.cutAll();
  await arrived;
  proxy.retarget(second.url);

  const { body, replayed, attempts } = await running;
  assert.equal(replayed, true);
  assert.equal(await countOrders(sql), 1);
  assert.deepEqual((await second.call(`GET /v1/orders/${body.order_id}`)).json, body);
  assert.notEqual(attempts, 1);
});
