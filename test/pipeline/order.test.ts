import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as v from 'valibot';
import { mount } from '../../src/handler.ts';
import { problem } from '../../src/protocol/errors.ts';
import { procedure } from '../../src/protocol/procedure.ts';
import { type CallOptions, startServer } from '../helpers/server.ts';
import { testSql } from '../helpers/sql.ts';

/** A procedure that can refuse for every reason there is. */
const strict = procedure({
  method: 'POST',
  path: '/v1/test/strict',
  summary: 'Refuse for every reason there is.',
  key: 'required',
  scope: 'test:strict',
  spends: true,
  condition: 'if_match',
  body: v.strictObject({ n: v.number() }),
  answers: { 201: v.object({}) },
});

test('of all that is wrong with a request, the first in the order of the contract is told; put right, the next one is', async (t) => {
  const state = { isCurrent: false };
  const current = async () => {
    if (!state.isCurrent) throw problem('precondition_failed');
  };
  const server = await startServer(t, {
    env: { MAX_BODY_BYTES: '100', RATE_LIMIT_BURST: '1', RATE_LIMIT_RPM: '1' },
    procedures: () => [
      mount(strict, {
        check: current,
        async commit() {
          await current();
          return { status: 201, body: {} };
        },
      }),
    ],
  });
  const sql = testSql(t, server.databaseUrl);
  const used = await server.call('POST /v1/orders', { key: 'used', body: { cents: 1, item: 'x' } });
  assert.equal(used.status, 201);

  const request: { line: string; options: CallOptions & { headers: Record<string, string> } } = {
    line: 'PATCH /v1/test/wrong',
    options: {
      token: null,
      body: `{"x":${'1'.repeat(200)}`,
      headers: { 'content-type': 'text/plain', 'if-match': 'unquoted' },
    },
  };
  const { options } = request;
  const repairs: [code: string, repair: () => unknown][] = [
    ['not_found', () => Object.assign(request, { line: 'PATCH /v1/test/strict' })],
    ['method_not_allowed', () => Object.assign(request, { line: 'POST /v1/test/strict' })],
    ['unauthenticated', () => delete options.token],
    ['forbidden', () => Object.assign(options, { scope: 'test:strict' })],
    ['unsupported_media_type', () => Object.assign(options.headers, { 'content-type': 'application/json' })],
    ['body_too_large', () => Object.assign(options, { body: '{"x":' })],
    ['idempotency_key_required', () => Object.assign(options, { key: 'a b' })],
    ['idempotency_key_invalid', () => Object.assign(options, { key: 'used' })],
    ['precondition_invalid', () => delete options.headers['if-match']],
    ['invalid_json', () => Object.assign(options, { body: '{"x":1}' })],
    ['idempotency_key_reused', () => Object.assign(options, { key: 'fresh' })],
    ['rate_limited', () => sql`update buckets set tokens = 1`],
    ['precondition_required', () => Object.assign(options.headers, { 'if-match': '"old"' })],
    ['precondition_failed', () => Object.assign(state, { isCurrent: true })],
    ['invalid_body', () => Object.assign(options, { body: '{"n":1}' })],
  ];
  for (const [code, repair] of repairs) {
    if (code === 'rate_limited') await sql`insert into buckets values ('acme', 0, now())`;
    const answer = await server.call(request.line, options);
    assert.equal(answer.json.code, code, `${request.line}: ${answer.text}`);
    await repair();
    if (code !== 'idempotency_key_reused') await sql`update buckets set tokens = 1`;
  }
  const done = await server.call(request.line, options);
  assert.equal(done.status, 201, done.text);
  assert.equal(done.headers.get('idempotent-replayed'), 'false');
  assert.equal((await server.call('GET /v1/idempotency-keys/fresh')).json.attempt, 1);
});

test('every answer but the parser’s carries the trace id of the request, its own or a fresh one', async (t) => {
  const server = await startServer(t);
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
  const lines = [
    'GET /v1/orders',
    'GET /healthz',
    'GET /v1/nothing',
    'DELETE /v1/orders',
    'POST /v1/orders',
    'HEAD /v1/orders',
  ];
  for (const line of lines) {
    const traced = await server.call(line, { headers: { traceparent: `00-${traceId}-00f067aa0ba902b7-00` } });
    assert.equal(traced.headers.get('x-trace-id'), traceId, line);
    if (traced.status >= 400) assert.equal(traced.json.trace_id, traceId, line);
    for (const traceparent of [
      '',
      'nonsense',
      `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`,
      `ff-${traceId}-00f067aa0ba902b7-01`,
    ]) {
      const fresh = await server.call(line, { headers: { traceparent } });
      assert.match(fresh.headers.get('x-trace-id') ?? '', /^(?!0{32})[0-9a-f]{32}$/, line);
      assert.notEqual(fresh.headers.get('x-trace-id'), traceId, `${line}: ${traceparent}`);
    }
  }
});

test('33. a stranger learns nothing from conditions: 401, 403 and 404 come before 304 and 412', async (t) => {
  const server = await startServer(t);
  const order = await server.call('POST /v1/orders', { key: 'k', body: { cents: 1, item: 'x' } });
  const line = `GET /v1/orders/${order.json.order_id}`;
  const conditions = [{ 'if-none-match': '*' }, { 'if-match': '"x"' }, { 'if-match': '*' }];
  for (const headers of conditions) {
    assert.equal((await server.call(line, { token: null, headers })).status, 401);
    assert.equal((await server.call(line, { tenant: 'globex', headers })).status, 404);
  }
  assert.equal((await server.call(line, { headers: { 'if-none-match': '*' } })).status, 304);
  assert.equal((await server.call(line, { headers: { 'if-match': '"x"' } })).status, 412);
});

test('an unexpected fault is 500 with a fixed sentence; its cause is in the log under the trace id and nowhere else', async (t) => {
  const server = await startServer(t, {
    procedures: () => [
      mount({ ...strict, scope: 'test:strict' } as typeof strict, {
        async commit() {
          throw new Error('the password is hunter2');
        },
      }),
    ],
  });
  const answer = await server.call('POST /v1/test/strict', {
    key: 'k',
    scope: 'test:strict',
    headers: { 'if-match': '*' },
    body: { n: 1 },
  });
  assert.equal(answer.status, 500);
  assert.deepEqual(Object.keys(answer.json), ['type', 'status', 'code', 'message', 'trace_id', 'key_action']);
  assert.equal(answer.json.code, 'internal');
  assert.doesNotMatch(answer.text + JSON.stringify([...answer.headers]), /hunter2|Error/);
  const caught = server.logLines.find((line) => line.level === 'error' && line.trace_id === answer.json.trace_id);
  assert.match(String(caught?.error), /hunter2/);
  assert.match(String(caught?.stack), /order\.test\.ts/);
});
