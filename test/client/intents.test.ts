import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createClient, type Intent } from '../../src/client/index.ts';
import { atEnd } from '../helpers/cleanup.ts';
import { temporaryFolder } from '../helpers/database.ts';
import { type Fault, startFaultProxy } from '../helpers/fault-proxy.ts';
import { startServer, testToken } from '../helpers/server.ts';
import { countOrders, testSql, until } from '../helpers/sql.ts';
import { orderAnswer, scriptedClient } from './scripted.ts';

const program = fileURLToPath(new URL('./resuming-process.ts', import.meta.url));
const order = { body: { cents: 5, item: 'tea' } };

function start(t: TestContext, ...args: string[]) {
  const child = spawn(process.execPath, ['--import', 'tsx', program, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  atEnd(t, async () => {
    child.kill('SIGKILL');
    await exited;
  });
  return { child, exited, output: text(child.stdout) };
}

const moments: [when: string, fault: Fault][] = [
  ['before the server sees its request', { kind: 'hang', what: 'request' }],
  ['when the server has answered and it has not read the answer', { kind: 'hang', what: 'answer' }],
];

for (const [when, fault] of moments) {
  test(`a process killed ${when} finishes its intent after a restart, once`, async (t) => {
    const server = await startServer(t);
    const proxy = await startFaultProxy(t, server.url);
    const sql = testSql(t, server.databaseUrl);
    const folder = temporaryFolder();
    atEnd(t, () => rmSync(folder, { recursive: true }));
    const args = [proxy.url, await testToken(), join(folder, 'intent.json')];

    proxy.next(fault);
    const first = start(t, ...args);
    await until(() => proxy.passages.length === 1);
    if (fault.kind === 'hang' && fault.what === 'answer') await proxy.passages[0]?.answered;
    first.child.kill('SIGKILL');
    await first.exited;
    assert.equal(await first.output, '');

    const second = start(t, ...args);
    const { id, replayed } = JSON.parse(await second.output);
    assert.deepEqual(await second.exited, [0, null]);
    const [made] = (await server.call('GET /v1/orders')).json.items;
    assert.equal(id, made.order_id);
    assert.equal(replayed, fault.kind === 'hang' && fault.what === 'answer');
    assert.equal(await countOrders(sql), 1);
    assert.equal(proxy.passages[1]?.body(), proxy.passages[0]?.body());
  });
}

test('two clients that run one saved intent at the same moment get one order', async (t) => {
  const server = await startServer(t);
  const sql = testSql(t, server.databaseUrl);
  const token = await testToken();
  const [one, other] = [createClient({ baseUrl: server.url, token }), createClient({ baseUrl: server.url, token })];
  const intent = one.intent('createOrder', order);
  const answers = await Promise.all([one.run(intent), other.run(structuredClone(intent)), one.run(intent)]);
  assert.equal(new Set(answers.map(({ body }) => body.order_id)).size, 1);
  assert.equal(await countOrders(sql), 1);
});

test('an intent is plain JSON with one key, and keeps the caller’s', () => {
  const { client } = scriptedClient();
  const intent = client.intent('createOrder', order);
  assert.deepEqual(JSON.parse(JSON.stringify(intent)), intent);
  assert.equal(intent.procedure, 'createOrder');
  assert.deepEqual(intent.input, order);
  assert.notEqual(client.intent('createOrder', order).key, intent.key);
  assert.equal(client.intent('createOrder', order, { key: 'mine/1+=' }).key, 'mine/1+=');
});

test('an intent does not change with the object it was made from', () => {
  const { client } = scriptedClient();
  const input = { body: { cents: 5, item: 'tea' } };
  const intent = client.intent('createOrder', input);
  input.body.cents = 6;
  assert.deepEqual(intent.input.body, { cents: 5, item: 'tea' });
});

test('an intent gives the same bytes after a store that reorders members', async () => {
  const { client, sent, play } = scriptedClient();
  const intent = client.intent('createOrder', order);
  const reordered = { ...intent, input: { body: { item: 'tea', cents: 5 } } } as Intent<'createOrder'>;
  play(orderAnswer(), orderAnswer());
  await client.run(intent);
  await client.run(reordered);
  assert.equal(sent[0]?.body, sent[1]?.body);
  assert.equal(sent[0]?.headers['idempotency-key'], sent[1]?.headers['idempotency-key']);
});

test('what is no intent of the table is refused before anything is sent', async () => {
  const { client, sent } = scriptedClient();
  const intent = client.intent('createOrder', order);
  const spoilt: unknown[] = [
    null,
    'text',
    {},
    { ...intent, version: 2 },
    { ...intent, procedure: 'toString' },
    { ...intent, procedure: 'getOrder' },
    { ...intent, createdAt: 'yesterday' },
    { ...intent, input: null },
  ];
  for (const stored of spoilt) await assert.rejects(client.run(stored as Intent<'createOrder'>), TypeError);
  await assert.rejects(client.run({ ...intent, key: '' }), RangeError);
  assert.equal(sent.length, 0);
});

test('an input that cannot be sent is refused when the intent is made', () => {
  const { client } = scriptedClient();
  assert.throws(() => client.intent('cancelJob', { params: { id: '..' } }), TypeError);
  assert.throws(() => client.intent('createOrder', { body: undefined } as never), TypeError);
});
