import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import test from 'node:test';
import { promisify } from 'node:util';
import Knock from '@knocklabs/node';
import got from 'got';
import ky from 'ky';
import { Agent, RetryAgent, request } from 'undici';
import { type FaultProxy, startFaultProxy } from '../helpers/fault-proxy.ts';
import { findProgram } from '../helpers/program.ts';
import { call, startServer, testToken } from '../helpers/server.ts';

/** Places one order as a user of the package would, retries left to the package, and answers the order's id. */
type PlaceOrder = (url: string, token: string) => Promise<string>;

const order = { cents: 3_000, item: 'pro-plan' };
const headers = (token: string) => ({
  authorization: `Bearer ${token}`,
  'content-type': 'application/json',
  'idempotency-key': randomUUID(),
});

const clients: Readonly<Record<string, PlaceOrder>> = {
  async '@knocklabs/node'(url, token) {
    const client = new Knock({ apiKey: token, baseURL: url, maxRetries: 4 });
    const placed = (await client.post('/v1/orders', { body: order })) as { order_id: string };
    return placed.order_id;
  },
  async "undici's RetryAgent"(url, token) {
    const dispatcher = new RetryAgent(new Agent(), { methods: ['POST'], maxRetries: 4, minTimeout: 20 });
    const { body } = await request(`${url}/v1/orders`, {
      method: 'POST',
      dispatcher,
      headers: headers(token),
      body: JSON.stringify(order),
    });
    const placed = (await body.json()) as { order_id: string };
    await dispatcher.close();
    return placed.order_id;
  },
  async got(url, token) {
    const retry = {
      limit: 4,
      methods: ['POST' as const],
      calculateDelay: ({ computedValue }: { computedValue: number }) => computedValue && 20,
    };
    return (
      await got.post(`${url}/v1/orders`, { headers: headers(token), json: order, retry }).json<{ order_id: string }>()
    ).order_id;
  },
  async ky(url, token) {
    const retry = { limit: 4, methods: ['post'], delay: () => 20 };
    return (
      await ky.post(`${url}/v1/orders`, { headers: headers(token), json: order, retry }).json<{ order_id: string }>()
    ).order_id;
  },
};

const curl = findProgram('curl');

async function placeByCurl(url: string, token: string, key: string): Promise<string> {
  const { stdout } = await promisify(execFile)(curl as string, [
    ...['-sS', '--retry', '4', '--retry-all-errors', '--retry-delay', '1'],
    ...[
      '-H',
      `Authorization: Bearer ${token}`,
      '-H',
      'Content-Type: application/json',
      '-H',
      `Idempotency-Key: ${key}`,
    ],
    ...['-d', JSON.stringify(order), `${url}/v1/orders`],
  ]);
  // What a try that was cut had printed already stands in front of the whole answer.
  return (JSON.parse(stdout.slice(stdout.lastIndexOf('{'))) as { order_id: string }).order_id;
}

async function assertOneOrder(serverUrl: string, proxy: FaultProxy, orderId: string): Promise<void> {
  const posts = proxy.passages.filter((passage) => passage.line === 'POST /v1/orders');
  await Promise.all(posts.map((passage) => passage.answered));
  assert.ok(posts.length >= 2, 'the client did try again');
  assert.equal(new Set(posts.map((passage) => passage.headers['idempotency-key'])).size, 1, 'with the same key');
  const { json } = await call(serverUrl, 'GET /v1/orders');
  assert.deepEqual(
    json.items.map((item: { order_id: string }) => item.order_id),
    [orderId],
  );
}

for (const [name, placeOrder] of Object.entries(clients)) {
  test(`34c: ${name} through a proxy that loses the first answer makes one order and gets it`, async (t) => {
    const server = await startServer(t);
    const proxy = await startFaultProxy(t, server.url);
    proxy.next({ kind: 'drop_answer' });
    await assertOneOrder(server.url, proxy, await placeOrder(proxy.url, await testToken()));
  });
}

test('34c: curl --retry through a proxy that loses the first answer makes one order and gets it', {
  skip: curl === undefined ? 'no curl' : false,
}, async (t) => {
  const server = await startServer(t);
  const proxy = await startFaultProxy(t, server.url);
  proxy.next({ kind: 'drop_answer' });
  await assertOneOrder(server.url, proxy, await placeByCurl(proxy.url, await testToken(), 'curl-1'));
});

test('34d: a 201 cut in the middle of its body comes whole to the next try of curl', {
  skip: curl === undefined ? 'no curl' : false,
}, async (t) => {
  const server = await startServer(t);
  const proxy = await startFaultProxy(t, server.url);
  proxy.next({ kind: 'cut_answer', bodyBytes: 20 });
  await assertOneOrder(server.url, proxy, await placeByCurl(proxy.url, await testToken(), 'curl-2'));
});

test('34d: a 201 cut in the middle of its body comes whole to the next try of got', async (t) => {
  const server = await startServer(t);
  const proxy = await startFaultProxy(t, server.url);
  proxy.next({ kind: 'cut_answer', bodyBytes: 20 });
  await assertOneOrder(server.url, proxy, await (clients.got as PlaceOrder)(proxy.url, await testToken()));
});
