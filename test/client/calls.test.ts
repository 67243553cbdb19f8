import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import {
  AbortedError,
  CallError,
  KeyLifetimeError,
  KeyUnusableError,
  NoAnswerError,
  PreconditionFailedError,
  RefusedError,
  UnavailableError,
} from '../../src/client/index.ts';
import { orderAnswer, problemAnswer, type Scripted, scriptedClient, startMs } from './scripted.ts';

const order = { body: { cents: 5, item: 'tea' } };

/** Runs createOrder against the script and answers the error it ends with. */
async function failureOf(...ends: Scripted[]) {
  const script = scriptedClient();
  script.play(...ends);
  const error: unknown = await script.client.call('createOrder', order, { key: 'k-1' }).then(
    () => assert.fail('the call should have failed'),
    (thrown) => thrown,
  );
  assert.ok(error instanceof CallError, String(error));
  return { error, ...script };
}

test('a call sends the procedure’s method, path, body and key, and answers what came', async () => {
  const { client, sent, play } = scriptedClient();
  play(orderAnswer({ etag: 'W/"t"', 'x-trace-id': 'abc' }));
  const answer = await client.call('createOrder', order, { key: 'k-1' });
  assert.equal(answer.body.order_id, 'ord_1');
  const { headers: _headers, ...facts } = answer;
  assert.deepEqual(
    { ...facts, body: 0 },
    { status: 201, body: 0, tag: 'W/"t"', replayed: false, fromMemory: false, key: 'k-1', attempts: 1, traceId: 'abc' },
  );
  assert.equal(sent[0]?.url, 'http://server.test/api/v1/orders');
  assert.equal(sent[0]?.method, 'POST');
  assert.equal(sent[0]?.body, '{"cents":5,"item":"tea"}');
  assert.equal(sent[0]?.headers['idempotency-key'], 'k-1');
  assert.equal(sent[0]?.headers.authorization, 'Bearer token-1');
  assert.equal(sent[0]?.headers['content-type'], 'application/json');
});

test('path parameters are encoded, and those that would be another path are not sent', async () => {
  const { client, sent, play } = scriptedClient();
  play({ status: 200, body: {} });
  await client.call('getIdempotencyKey', { params: { key: 'a/b+c=%2e ü' } });
  assert.equal(sent[0]?.url, 'http://server.test/api/v1/idempotency-keys/a%2Fb%2Bc%3D%252e%20%C3%BC');
  for (const key of ['', '.', '..']) {
    await assert.rejects(client.call('getIdempotencyKey', { params: { key } }), TypeError);
  }
  assert.equal(sent.length, 1);
});

test('a query leaves out what is undefined and goes in one order of names', async () => {
  const { client, sent, play } = scriptedClient();
  play({ status: 200, body: {} }, { status: 200, body: {} });
  await client.call('listOrders', { query: { limit: 5, after: 'a b' } });
  await client.call('listOrders', { query: { after: undefined, limit: '5' } });
  assert.match(sent[0]?.url ?? '', /\/v1\/orders\?after=a\+b&limit=5$/);
  assert.match(sent[1]?.url ?? '', /\/v1\/orders\?limit=5$/);
});

test('a write that needs no key gets one all the same, a read gets none', async () => {
  const { client, sent, play } = scriptedClient();
  play('broken', { status: 204 }, { status: 200, body: {} });
  await client.call('deleteDoc', { params: { id: 'd' }, ifMatch: 'W/"x"' });
  await client.call('getOrder', { params: { id: 'ord_1' } });
  assert.match(sent[0]?.headers['idempotency-key'] ?? '', /^[0-9a-f-]{36}$/);
  assert.equal(sent[1]?.headers['idempotency-key'], sent[0]?.headers['idempotency-key']);
  assert.equal(sent[0]?.headers['if-match'], 'W/"x"');
  assert.equal(sent[0]?.body, undefined);
  assert.equal(sent[2]?.headers['idempotency-key'], undefined);
});

test('a creation says If-None-Match: *', async () => {
  const { client, sent, play } = scriptedClient();
  play({ status: 201, body: {} });
  await client.call('putDoc', { params: { id: 'd' }, body: { title: 't', body: '' }, create: true });
  assert.equal(sent[0]?.headers['if-none-match'], '*');
  assert.equal(sent[0]?.headers['if-match'], undefined);
});

test('a duplicate is waited for on the server, for less than the try may last', async () => {
  const { client, sent, play } = scriptedClient();
  play(orderAnswer(), orderAnswer(), orderAnswer(), orderAnswer());
  await client.call('createOrder', order);
  await client.call('createOrder', order, { patience: { attemptTimeoutMs: 6_000 }, wantsCurrent: true });
  await client.call('createOrder', order, { patience: { budgetMs: 3_000 } });
  await client.call('createOrder', order, { patience: { budgetMs: 1_000 } });
  assert.equal(sent[0]?.headers.prefer, 'wait=10');
  assert.equal(sent[2]?.headers.prefer, 'wait=1');
  assert.equal(sent[3]?.headers.prefer, undefined);
  assert.equal(sent[1]?.headers.prefer, 'wait=3, return=representation');
});

test('a key that no server takes is refused before anything is sent', async () => {
  const { client, sent } = scriptedClient();
  for (const key of ['', 'two words', '"quoted"', 'ü', 'k'.repeat(256)]) {
    await assert.rejects(client.call('createOrder', order, { key }), RangeError);
  }
  assert.equal(sent.length, 0);
});

test('a header that cannot be sent is told at once, and is no lost connection', async () => {
  const { client, sent, reports } = scriptedClient({ token: 'two\nlines' });
  await assert.rejects(client.call('createOrder', order), TypeError);
  const { client: other } = scriptedClient();
  const write = { params: { id: 'd' }, body: {}, ifMatch: '“v1”' };
  await assert.rejects(other.call('patchDoc', write), TypeError);
  assert.equal(sent.length + reports.length, 0);
});

test('what the server says of waiting is obeyed from try to try', async () => {
  const { client, slept, play } = scriptedClient();
  play(
    problemAnswer(503, 'unavailable', { headers: { 'retry-after': '2', 'retry-after-ms': '1500' } }),
    problemAnswer(409, 'request_in_progress', { headers: { 'retry-after': '1' } }),
    problemAnswer(429, 'rate_limited', {
      headers: { 'retry-after': 'Sun, 06 Nov 1994 09:00:04 GMT', date: 'Sun, 06 Nov 1994 09:00:00 GMT' },
    }),
    'broken',
    orderAnswer(),
  );
  await client.call('createOrder', order);
  assert.deepEqual(slept, [1_575, 1_050, 4_200, 1_000]);
});

test('a refusal that no retry can help is one try and says what it is', async () => {
  const issues = [{ path: '/cents', message: 'too small' }];
  const { error, sent } = await failureOf(
    problemAnswer(422, 'invalid_body', { members: { issues, key_action: 'reuse' } }),
  );
  assert.ok(error instanceof RefusedError, String(error));
  assert.equal(error.name, 'RefusedError');
  assert.equal(error.code, 'invalid_body');
  assert.equal(error.status, 422);
  assert.equal(error.message, 'Says invalid_body.');
  assert.equal(error.traceId, 'trace');
  assert.equal(error.attempts, 1);
  assert.equal(error.keyAction, 'reuse');
  assert.equal(error.key, 'k-1');
  assert.deepEqual(error.problem.issues, issues);
  assert.equal(sent.length, 1);
});

test('x-should-retry: false ends a call whatever its status', async () => {
  const { error, sent } = await failureOf(problemAnswer(500, 'internal', { headers: { 'x-should-retry': 'false' } }));
  assert.ok(error instanceof RefusedError, String(error));
  assert.equal(sent.length, 1);
});

test('a key bound to another request, and one whose answer is gone, are told apart by what to do', async () => {
  const reused = await failureOf(
    problemAnswer(409, 'idempotency_key_reused', { members: { key_action: 'rotate', differs: ['body'] } }),
  );
  assert.ok(reused.error instanceof KeyUnusableError, String(reused.error));
  assert.equal(reused.error.keyAction, 'rotate');
  const expired = await failureOf(problemAnswer(409, 'idempotency_key_expired'));
  assert.ok(expired.error instanceof KeyUnusableError, String(expired.error));
  assert.equal(expired.error.keyAction, 'reconcile');
});

test('a refused precondition tells the tag that is there', async () => {
  const { error } = await failureOf(problemAnswer(412, 'precondition_failed', { headers: { etag: 'W/"v9"' } }));
  assert.ok(error instanceof PreconditionFailedError, String(error));
  assert.equal(error.currentTag, 'W/"v9"');
});

test('a redirect is not followed: it would turn a POST into a GET', async () => {
  const { error } = await failureOf({ status: 302, headers: { location: '/login' } });
  assert.ok(error instanceof RefusedError, String(error));
  assert.equal(error.code, 'foreign_answer');
});

test('the patience ends on an answer as UnavailableError with the wait it asked for', async () => {
  const { error, sent } = await failureOf(
    'broken',
    problemAnswer(503, 'unavailable', { headers: { 'retry-after': '600' } }),
  );
  assert.ok(error instanceof UnavailableError, String(error));
  assert.equal(error.code, 'unavailable');
  assert.equal(error.retryAfterMs, 600_000);
  assert.equal(error.keyAction, 'reuse');
  assert.equal(error.attempts, 2);
  assert.equal(sent.length, 2);
});

test('the patience ends without an answer as NoAnswerError within the budget', async () => {
  const { error, slept, reports } = await failureOf(...Array.from({ length: 200 }, () => 'broken' as const));
  assert.ok(error instanceof NoAnswerError, String(error));
  assert.equal(error.status, undefined);
  assert.equal(error.keyAction, 'reuse');
  assert.match(error.traceId, /^[0-9a-f]{32}$/);
  assert.ok(slept.reduce((sum, ms) => sum + ms, 0) < 120_000, `slept ${slept}`);
  assert.equal(error.attempts, reports.length);
  assert.equal(reports.at(-1)?.retryInMs, undefined);
  assert.equal(reports[0]?.retryInMs, 125);
});

test('a read’s failure says nothing of a key', async () => {
  const { client, play } = scriptedClient();
  play(problemAnswer(404, 'not_found'));
  const error = await client.call('getOrder', { params: { id: 'x' } }).catch((thrown) => thrown);
  assert.ok(error instanceof RefusedError, String(error));
  assert.equal(error.keyAction, undefined);
  assert.equal(error.key, undefined);
});

test('no try is sent past the Idempotency-Expires that a cut answer told, by the server’s clock', async () => {
  const headers = {
    'content-type': 'application/json',
    date: 'Sun, 06 Nov 1994 20:00:00 GMT',
    'idempotency-expires': '1994-11-06T20:00:01.000Z',
  };
  const { error, sent, slept } = await failureOf(
    { status: 201, headers, body: '{"order_id":' },
    ...Array.from({ length: 50 }, () => 'broken' as const),
  );
  assert.ok(error instanceof KeyLifetimeError, String(error));
  assert.equal(error.keyAction, 'reconcile');
  assert.ok(slept.reduce((sum, ms) => sum + ms, 0) < 1_000, `slept ${slept}`);
  assert.notEqual(sent.length, 1);
});

test('an intent older than its key’s lifetime is not sent', async () => {
  const { client, sent, pass, play } = scriptedClient();
  const intent = client.intent('createOrder', order);
  pass(86_399_000);
  play(orderAnswer());
  await client.run(intent);
  pass(1_000);
  const error = await client.run(intent).catch((thrown) => thrown);
  assert.ok(error instanceof KeyLifetimeError, String(error));
  assert.equal(error.attempts, 0);
  assert.equal(error.key, intent.key);
  assert.equal(sent.length, 1);
});

test('a signal ends a call before it is sent, on its way and while it waits', async () => {
  for (const moment of ['before', 'on its way', 'waiting'] as const) {
    const controller = new AbortController();
    const reason = new Error('enough');
    const abort = () => controller.abort(reason);
    const { client, play, sent, reports } = scriptedClient({
      onAttempt: moment === 'waiting' ? abort : () => {},
    });
    if (moment === 'before') abort();
    play(moment === 'waiting' ? 'broken' : 'silent');
    const running = client.call('createOrder', order, { signal: controller.signal });
    if (moment === 'on its way') queueMicrotask(abort);
    const error = await running.catch((thrown) => thrown);
    assert.ok(error instanceof AbortedError, moment);
    assert.equal(error.name, 'AbortError');
    assert.equal(error.cause, reason);
    assert.equal(error.code, 'aborted');
    assert.equal(reports.length, 0);
    assert.equal(sent.length, moment === 'before' ? 0 : 1);
    assert.equal(error.attempts, sent.length);
  }
});

test('a signal ends a call that waits for its token', async () => {
  const controller = new AbortController();
  const { client, sent } = scriptedClient({ token: () => new Promise(() => {}) });
  const running = client.call('createOrder', order, { signal: controller.signal });
  controller.abort();
  await assert.rejects(running, AbortedError);
  assert.equal(sent.length, 0);
});

test('a signal that outlives its calls holds on to none of them', async () => {
  const { signal } = new AbortController();
  const { client, play } = scriptedClient({ token: async () => 'token' });
  for (let i = 0; i < 20; i += 1) {
    play('broken', orderAnswer());
    await client.call('createOrder', order, { signal });
  }
  assert.equal(getEventListeners(signal, 'abort').length, 0);
});

test('a hook that throws changes nothing', async () => {
  const { client, play } = scriptedClient({
    onAttempt() {
      throw new Error('the hook is broken');
    },
  });
  play('broken', orderAnswer());
  assert.equal((await client.call('createOrder', order)).status, 201);
});

test('a try’s answer is judged by what was received: short of its length, or not the JSON it says, it is none', async () => {
  const cut: Scripted[] = [
    { status: 201, headers: { 'content-type': 'application/json' }, body: '{"order_id":"ord' },
    { status: 201, headers: { 'content-type': 'application/json', 'content-length': '80' } },
    { status: 201, headers: { 'content-type': 'text/plain', 'content-length': '80' }, body: '12' },
    { status: 500, headers: { 'content-type': 'application/problem+json' }, body: '{"code":' },
  ];
  for (const end of cut) {
    const { client, play, reports } = scriptedClient();
    play(end, orderAnswer());
    await client.call('createOrder', order);
    assert.equal(reports[0]?.outcome, 'cut');
  }
});

test('an answer that was compressed on its way is whole although its length says otherwise', async () => {
  const { client, play } = scriptedClient();
  play({ ...orderAnswer({ 'content-length': '5000' }) });
  assert.equal((await client.call('createOrder', order)).attempts, 1);
});

test('the scripted clock begins where it says', () => {
  assert.equal(new Date(startMs).toUTCString(), 'Sun, 06 Nov 1994 08:49:37 GMT');
});
