import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLog, errorFields } from '../src/log.ts';
import { assertNoSecretIn, noteKey } from './helpers/log-watch.ts';
import { startServer, testToken } from './helpers/server.ts';
import { testSql } from './helpers/sql.ts';
import { createDoor, createStage } from './helpers/stage.ts';

test('a log writes one line of JSON an event, from its level up', () => {
  const lines: string[] = [];
  const log = createLog('warn', (line) => lines.push(line));
  log.debug('a');
  log.info('b');
  log.warn('c', { text: 'two\nlines', missing: undefined });
  log.error('d', errorFields(new Error('outer', { cause: new TypeError('inner') })));
  assert.equal(lines.length, 2);
  for (const line of lines) assert.match(line, /^\{[^\n]*\}\n$/);
  const [warned, failed] = lines.map((line) => JSON.parse(line));
  assert.deepEqual({ ...warned, time: 0 }, { time: 0, level: 'warn', message: 'c', text: 'two\nlines' });
  assert.match(warned.time, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  assert.deepEqual([failed.error, failed.cause], ['Error: outer', 'TypeError: inner']);
});

test('an error is told without the values it may quote: of the database, of a query, of a text that is no JSON', () => {
  const database = Object.assign(new Error('invalid input syntax for type uuid: "secret"'), { code: '22P02' });
  const query = Object.assign(new Error('Failed query: select $1\nparams: secret', { cause: database }), {
    params: ['secret'],
  });
  const syntax = (() => {
    try {
      JSON.parse('{secret');
    } catch (error) {
      return error;
    }
  })();
  for (const error of [database, query, syntax, new Error('outer', { cause: query }), 'secret']) {
    assert.doesNotMatch(JSON.stringify(errorFields(error)), /secret/);
  }
  assert.equal(errorFields(database).error, 'Error 22P02');
  const missing = Object.assign(new Error('relation "idem" does not exist'), { code: '42P01' });
  assert.equal(errorFields(missing).error, 'Error 42P01: relation "idem" does not exist');
  assert.match(String(errorFields(query).stack), /^ +at .*log\.test\.ts/);
});

test('a silent log writes nothing', () => {
  const log = createLog('silent', () => assert.fail('wrote'));
  log.error('a');
});

test('each request is one line: method, route, status, time, tenant, trace and what its key did', async (t) => {
  const stage = createStage();
  const server = await startServer(t, { procedures: stage.procedures });
  const sql = testSql(t, server.databaseUrl);
  const body = { cents: 1 };
  const send = (key: string, cents = 1) => server.call('POST /v1/test/slow', { key, body: { cents } });
  const outcome = async (key: string, cents = 1) => {
    const answer = await send(key, cents);
    const traceId = answer.headers.get('x-trace-id');
    const lines = server.logLines.filter((line) => line.message === 'request' && line.trace_id === traceId);
    assert.equal(lines.length, 1);
    const line = lines[0] as Record<string, unknown>;
    assert.deepEqual(
      [line.method, line.route, line.status, line.tenant, line.level],
      ['POST', '/v1/test/slow', answer.status, 'acme', 'info'],
    );
    assert.equal(typeof line.ms, 'number');
    assert.match(String(line.key), /^[0-9a-f]{16}$/);
    return line.key_outcome;
  };
  assert.equal(await outcome('k'), 'first');
  assert.equal(await outcome('k'), 'replayed');
  assert.equal(await outcome('k', 2), 'reused');
  const door = createDoor();
  stage.on('running', { prepare: door.pass });
  const running = send('running');
  await door.arrived;
  assert.equal(await outcome('running'), 'in_progress');
  door.fail(new Error('fails'));
  assert.equal((await running).status, 500);
  stage.on('running', {});
  assert.equal(await outcome('running'), 'taken_over');
  await sql`update idem set expires_at = now() - interval '1 minute'`;
  assert.equal(await outcome('k'), 'expired');

  const read = await server.call('GET /v1/orders');
  const line = server.logLines.find((entry) => entry.trace_id === read.headers.get('x-trace-id'));
  assert.deepEqual([line?.key_outcome, line?.key, line?.code], ['none', undefined, undefined]);
  const stranger = await server.call('POST /v1/test/slow', { token: null, key: 'k', body });
  const refused = server.logLines.find((entry) => entry.trace_id === stranger.headers.get('x-trace-id'));
  assert.deepEqual([refused?.status, refused?.code, refused?.tenant], [401, 'unauthenticated', undefined]);
});

test('neither a token nor a key, a body, a query or an answer is ever in the log', async (t) => {
  const stage = createStage();
  const server = await startServer(t, { env: { LOG_LEVEL: 'debug' }, procedures: stage.procedures });
  const token = await testToken({ tenant: 'acme', sub: 'subject-secret' });
  const key = 'key-secret-0f8fad5b';
  const send = (body: unknown, k = key) =>
    server.call('POST /v1/test/slow?q=query-secret', { token, key: k, body, headers: { cookie: 'cookie-secret' } });
  const answers = [
    await send({ cents: 1, note: 'body-secret' }),
    await send({ cents: 1, note: 'body-secret' }),
    await send({ cents: 2, note: 'body-secret' }),
    await send({ 'member-secret': 'body-secret' }, 'key-secret-2'),
    await send('{"broken-secret', 'key-secret-3'),
    await server.call('GET /v1/orders/path-secret', { token }),
    await server.call('GET /v1/idempotency-keys/key-secret-0f8fad5b', { token }),
    await server.call('GET /v1/orders', { token: `${token}x` }),
  ];
  stage.on('key-secret-4', { after: async (tx) => void (await tx.sql`select ${'sql-secret'}::int`) as undefined });
  answers.push(await send({ cents: 1 }, 'key-secret-4'));
  assert.deepEqual(
    answers.map((answer) => answer.status),
    [201, 201, 409, 422, 400, 404, 200, 401, 500],
  );
  const whole = JSON.stringify(server.logLines);
  assert.doesNotMatch(
    whole,
    /key-secret|body-secret|query-secret|cookie-secret|member-secret|broken-secret|path-secret/,
  );
  assert.doesNotMatch(whole, /sql-secret/);
  for (const part of token.split('.')) assert.ok(!whole.includes(part));
  assert.ok(!whole.includes(answers[0]?.json.order_id));
});

test('a key or a token in a log fails the test that sent it', () => {
  noteKey('a-key-that-was-sent');
  assertNoSecretIn(['listens on …', '{"message":"request","key_outcome":"first"}', 'eyJhbGciOiJIUzI1NiJ9.eyJz.abc']);
  assert.throws(() => assertNoSecretIn(['{"message":"request","path":"/v1/keys/a-key-that-was-sent?x"}']), /the key/);
  assert.throws(() => assertNoSecretIn(['{"error":"Error: bad token eyJhbGciOiJIUzI1NiJ9.eyJz.abc"}']), /a token/);
});
