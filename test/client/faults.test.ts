import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type AttemptReport, type Client, type ClientOptions, createClient } from '../../src/client/index.ts';
import { type Fault, type FaultProxy, startFaultProxy } from '../helpers/fault-proxy.ts';
import { startServer, type TestServer, testToken } from '../helpers/server.ts';
import { countOrders, testSql } from '../helpers/sql.ts';

type Bundle = {
  server: TestServer;
  proxy: FaultProxy;
  client: Client;
  orders: () => Promise<number>;
  reports: AttemptReport[];
};

/** A server, a proxy before it and a client that sees the proxy alone and waits only a little between tries. */
async function bundle(t: TestContext, options: Partial<ClientOptions> = {}): Promise<Bundle> {
  const server = await startServer(t);
  const proxy = await startFaultProxy(t, server.url);
  const sql = testSql(t, server.databaseUrl);
  const reports: AttemptReport[] = [];
  const client = createClient({
    baseUrl: proxy.url,
    token: await testToken(),
    onAttempt: (report) => reports.push(report),
    ...options,
    patience: { backOffMs: 10, maxBackOffMs: 50, ...options.patience },
  });
  return { server, proxy, client, orders: () => countOrders(sql), reports };
}

const order = { body: { cents: 1_250, item: 'Ein Buch: 漢字 😀' } };

test('a call whose first two answers are dropped makes one order and returns it', async (t) => {
  const { proxy, client, orders, reports } = await bundle(t);
  proxy.next({ kind: 'drop_answer' }, { kind: 'drop_answer', reset: true });
  const answer = await client.call('createOrder', order);
  assert.equal(answer.status, 201);
  assert.equal(answer.body.item, order.body.item);
  assert.equal(answer.attempts, 3);
  assert.equal(answer.replayed, true);
  assert.equal(await orders(), 1);
  const { body } = await client.call('getOrder', { params: { id: answer.body.order_id } });
  assert.deepEqual(body, answer.body);
  assert.deepEqual(
    reports.map(({ procedure, outcome, status }) => [procedure, outcome, status]),
    [
      ['createOrder', 'connection', undefined],
      ['createOrder', 'connection', undefined],
      ['createOrder', 'answered', 201],
      ['getOrder', 'answered', 200],
    ],
  );
});

test('every try of a call has the same key, the same bytes and the same trace', async (t) => {
  const { proxy, client } = await bundle(t);
  proxy.next({ kind: 'drop_answer' }, { kind: 'refuse' }, { kind: 'cut_answer', bodyBytes: 5 });
  const { key } = await client.call('createOrder', order);
  assert.equal(proxy.passages.length, 4);
  for (const passage of proxy.passages) {
    assert.equal(passage.headers['idempotency-key'], key);
    assert.equal(passage.body(), proxy.passages[0]?.body());
    assert.equal(passage.headers.traceparent?.slice(0, 36), proxy.passages[0]?.headers.traceparent?.slice(0, 36));
  }
});

const faults: [name: string, fault: Fault][] = [
  ['is refused', { kind: 'refuse' }],
  ['is reset before it is forwarded', { kind: 'refuse', reset: true }],
  ['loses its answer', { kind: 'drop_answer' }],
  ['is reset where the answer should be', { kind: 'drop_answer', reset: true }],
  ['gets the head of an answer alone', { kind: 'cut_answer', bodyBytes: 0 }],
  ['gets half a body', { kind: 'cut_answer', bodyBytes: 40 }],
  ['gets half a body and a reset', { kind: 'cut_answer', bodyBytes: 40, reset: true }],
  ['is sent twice by somebody between', { kind: 'duplicate' }],
  ['is slow on its way', { kind: 'delay', ms: 50 }],
  ['is answered slowly', { kind: 'delay', ms: 50, what: 'answer' }],
  ['is answered with a gateway’s own page', { kind: 'answer', bytes: gatewayPage(502) }],
  ['is answered 200 by a captive portal', { kind: 'answer', bytes: gatewayPage(200) }],
];

test('whatever happens to a request on its way, one order is made and returned', async (t) => {
  const { proxy, client, orders } = await bundle(t);
  let made = 0;
  for (const [name, fault] of faults) {
    await t.test(`a request that ${name}`, async () => {
      proxy.next(fault);
      const answer = await client.call('createOrder', order);
      made += 1;
      assert.equal(answer.status, 201);
      const read = await client.call('getOrder', { params: { id: answer.body.order_id } });
      assert.deepEqual(read.body, answer.body);
      assert.equal(await orders(), made);
    });
  }
});

test('a try that hangs is given up after its time, and the next one gets the order', async (t) => {
  const { proxy, client, orders, reports } = await bundle(t, { patience: { attemptTimeoutMs: 300 } });
  proxy.next({ kind: 'hang' });
  const answer = await client.call('createOrder', order);
  assert.equal(answer.status, 201);
  assert.equal(reports[0]?.outcome, 'timed_out');
  assert.equal(await orders(), 1);
});

test('forty calls through a proxy that harms two requests of three make forty orders', async (t) => {
  const { proxy, client, orders } = await bundle(t);
  let count = 0;
  const kinds: Fault[] = [{ kind: 'drop_answer' }, { kind: 'cut_answer', bodyBytes: 20 }, { kind: 'pass' }];
  proxy.decide(() => kinds[count++ % kinds.length] as Fault);
  const answers = await Promise.all(Array.from({ length: 40 }, () => client.call('createOrder', order)));
  assert.equal(new Set(answers.map(({ body }) => body.order_id)).size, 40);
  assert.equal(await orders(), 40);
});

test('a redirect is refused and not followed, by the real fetch too', async (t) => {
  const { proxy, client, orders } = await bundle(t);
  for (const status of [301, 302, 303, 307, 308]) {
    proxy.next({
      kind: 'answer',
      bytes: `HTTP/1.1 ${status} Elsewhere\r\nLocation: /v1/orders\r\nContent-Length: 0\r\n\r\n`,
    });
    await assert.rejects(client.call('createOrder', order), { code: 'foreign_answer', status, attempts: 1 });
  }
  assert.equal(proxy.passages.length, 5);
  assert.equal(await orders(), 0);
});

test('a read whose answers are cut is read again until it is whole', async (t) => {
  const { proxy, client } = await bundle(t);
  const made = await client.call('createOrder', order);
  proxy.next({ kind: 'cut_answer', bodyBytes: 30 }, { kind: 'drop_answer' });
  const { body, attempts } = await client.call('listOrders', { query: { limit: 5 } });
  assert.deepEqual(body.items, [made.body]);
  assert.equal(attempts, 3);
});

test('an intent that was saved finds the answer of the one that was run before', async (t) => {
  const { proxy, client, orders } = await bundle(t);
  const saved = JSON.stringify(client.intent('createOrder', order));
  const first = await client.run(JSON.parse(saved));
  const second = await client.run(JSON.parse(saved));
  assert.deepEqual(second.body, first.body);
  assert.equal(second.replayed, true);
  assert.equal(proxy.passages[0]?.body(), proxy.passages[1]?.body());
  assert.equal(await orders(), 1);
});

function gatewayPage(status: number): string {
  const page = '<html><body>Something else</body></html>';
  return `HTTP/1.1 ${status} Whatever\r\nContent-Type: text/html\r\nContent-Length: ${page.length}\r\nConnection: close\r\n\r\n${page}`;
}
