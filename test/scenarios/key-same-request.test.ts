import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CallOptions, startServer } from '../helpers/server.ts';
import { countOrders, testSql } from '../helpers/sql.ts';
import { createDoor, createStage } from '../helpers/stage.ts';

/** Bodies in pairs, as bytes: the same request or another one. The procedure takes any JSON. */
const pairs: readonly [what: string, one: string, other: string, isSame: boolean][] = [
  ['12. member order', '{"cents":1,"note":"x"}', '{"note":"x","cents":1}', true],
  ['12. white space', '{"cents":1,"note":"x"}', ' {\n"cents" : 1 ,\t"note":"x"}\r\n', true],
  ['12. an escape and its letter', '{"cents":1,"note":"\\u00e9"}', '{"cents":1,"note":"é"}', true],
  ['12. two ways to write a number', '{"cents":1,"note":"x"}', '{"cents":1.0,"note":"x"}', true],
  ['12. an exponent', '{"cents":100}', '{"cents":1e2}', true],
  ['12. array order', '{"cents":1,"any":[1,2]}', '{"cents":1,"any":[2,1]}', false],
  ['12. NFC against NFD', '{"cents":1,"note":"é"}', '{"cents":1,"note":"e\u0301"}', false],
  ['12. members that differ by case', '{"cents":1,"any":{"a":1,"A":2}}', '{"cents":1,"any":{"a":2,"A":1}}', false],
  ['13. a member called __proto__', '{"cents":1,"any":{"__proto__":1}}', '{"cents":1,"any":{}}', false],
  ['13. the value of __proto__', '{"cents":1,"any":{"__proto__":1}}', '{"cents":1,"any":{"__proto__":2}}', false],
  ['15. null against no value', '{"cents":1,"any":null}', '{"cents":1}', false],
  ['15. an empty object against null', '{"cents":1,"any":{}}', '{"cents":1,"any":null}', false],
  ['a default that is sent against one that is filled in', '{"cents":1,"note":"default"}', '{"cents":1}', false],
  ['a number against its text', '{"cents":1,"any":1}', '{"cents":1,"any":"1"}', false],
  ['close doubles', '{"cents":1,"any":0.1}', '{"cents":1,"any":0.10000000000000002}', false],
  ['minus zero and zero', '{"cents":1,"any":-0}', '{"cents":1,"any":0}', true],
];

test('12, 13, 15. what is the same request and what is not', async (t) => {
  const server = await startServer(t, { procedures: createStage().procedures });
  const sql = testSql(t, server.databaseUrl);
  for (const [index, [what, one, other, isSame]] of pairs.entries()) {
    await t.test(what, async () => {
      const before = await countOrders(sql);
      const send = (body: string) => server.call('POST /v1/test/any', { key: `pair-${index}`, body });
      const first = await send(one);
      assert.equal(first.status, 201, first.text);
      const second = await send(other);
      if (isSame) {
        assert.equal(second.status, 201, second.text);
        assert.equal(second.text, first.text);
      } else {
        assert.equal(second.status, 409, second.text);
        assert.deepEqual(second.json.differs, ['body']);
        assert.equal(second.json.key_action, 'rotate');
        assert.equal(second.headers.get('x-should-retry'), 'false');
        assert.equal(second.headers.get('retry-after'), null);
      }
      assert.equal((await countOrders(sql)) - before, 1);
    });
  }
});

test('13. what cannot be told apart as a double, and members that come twice, are refused and leave the key free', async (t) => {
  const server = await startServer(t, { procedures: createStage().procedures });
  for (const body of [
    '{"cents":1,"any":9007199254740993}',
    '{"cents":1,"any":9007199254740992}',
    '{"cents":1,"any":1,"any":2}',
    '{"cents":1,"\\u0061ny":1,"any":1}',
  ]) {
    const refused = await server.call('POST /v1/test/any', { key: 'k', body });
    assert.equal(refused.status, 400, body);
    assert.equal(refused.json.code, 'invalid_json');
    assert.equal(refused.json.key_action, 'reuse');
  }
  assert.equal((await server.call('POST /v1/test/any', { key: 'k', body: { cents: 1 } })).status, 201);
});

/** One request and others under its key, each with the parts that differ. */
const first: [line: string, options: CallOptions] = ['POST /v1/test/slow', { body: { cents: 1 } }];
const others: readonly [what: string, line: string, options: CallOptions, differs: string[]][] = [
  ['path', 'POST /v1/test/pay', { body: { cents: 1 }, scope: 'test:pay' }, ['path']],
  ['method', 'PUT /v1/test/slow', { body: { cents: 1 } }, ['method']],
  ['query', 'POST /v1/test/slow?a=1', { body: { cents: 1 } }, ['query']],
  ['body', 'POST /v1/test/slow', { body: { cents: 2 } }, ['body']],
  ['if_match', 'POST /v1/test/slow', { body: { cents: 1 }, headers: { 'if-match': '"a"' } }, ['if_match']],
  ['if_none_match', 'POST /v1/test/slow', { body: { cents: 1 }, headers: { 'if-none-match': '*' } }, ['if_none_match']],
  [
    'all',
    'PUT /v1/test/slow?a',
    { body: { cents: 2 }, headers: { 'if-match': '*' } },
    ['method', 'query', 'if_match', 'body'],
  ],
  ['an invalid body', 'POST /v1/test/slow', { body: { wrong: true } }, ['body']],
];

test('14. another path, method, query, condition or body under one key is told so: while running, when finished, when failed', async (t) => {
  const stage = createStage();
  const server = await startServer(t, { procedures: stage.procedures });
  const sql = testSql(t, server.databaseUrl);

  const assertEachDiffers = async (key: string, moment: string) => {
    for (const [what, line, options, differs] of others) {
      const other = await server.call(line, { ...options, key });
      assert.equal(other.status, 409, `${moment}, ${what}: ${other.text}`);
      assert.equal(other.json.code, 'idempotency_key_reused');
      assert.deepEqual([...other.json.differs].sort(), [...differs].sort(), `${moment}, ${what}`);
      assert.deepEqual(
        Object.keys(other.json).sort(),
        ['code', 'differs', 'key_action', 'message', 'status', 'trace_id', 'type'],
        'nothing of the first request or answer',
      );
      assert.equal(other.headers.get('idempotent-replayed'), null);
      assert.equal(other.headers.get('location'), null);
    }
  };

  const door = createDoor();
  stage.on('running', { prepare: door.pass });
  const running = server.call(first[0], { ...first[1], key: 'running' });
  await door.arrived;
  await assertEachDiffers('running', 'running');
  door.open();
  assert.equal((await running).status, 201);

  await assertEachDiffers('running', 'finished');

  stage.on('failed', { prepare: () => Promise.reject(new Error('fails')) });
  assert.equal((await server.call(first[0], { ...first[1], key: 'failed' })).status, 500);
  await assertEachDiffers('failed', 'failed');

  // An owner that is lost: its lease has run out and nobody has taken over.
  await sql`insert into idem select tenant, 'lost', fingerprint, 'in_progress', fencing_token, attempt,
    now() - interval '1 minute', created_at, expires_at, sweep_at from idem where key = 'failed'`;
  await assertEachDiffers('lost', 'owner lost');
  assert.equal((await server.call(first[0], { ...first[1], key: 'lost' })).status, 201);
});

test('what may change between two tries of one request does not make another one of it', async (t) => {
  const server = await startServer(t, { procedures: createStage().procedures });
  const base = { key: 'k', body: { cents: 1 } };
  const made = await server.call('POST /v1/test/slow?b=2&a=1', {
    ...base,
    headers: { 'if-match': 'W/"a", "b"', 'if-none-match': '"c"' },
  });
  assert.equal(made.status, 201, made.text);
  const variants: [what: string, line: string, options: CallOptions][] = [
    ['the order of query names', 'POST /v1/test/slow?a=1&b=2', {}],
    ['W/ on the tags', 'POST /v1/test/slow?a=1&b=2', { headers: { 'if-match': '"a","b"', 'if-none-match': 'W/"c"' } }],
    [
      'parameters of the media type',
      'POST /v1/test/slow?a=1&b=2',
      { headers: { 'content-type': 'Application/JSON; charset=UTF-8' } },
    ],
    [
      'headers of an SDK',
      'POST /v1/test/slow?a=1&b=2',
      { headers: { 'x-stainless-retry-count': '2', 'user-agent': 'x' } },
    ],
    [
      'the trace',
      'POST /v1/test/slow?a=1&b=2',
      { headers: { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` } },
    ],
    ['the quoted form of the key', 'POST /v1/test/slow?a=1&b=2', { headers: { 'idempotency-key': ' "k" ' } }],
    ['who of the tenant asks', 'POST /v1/test/slow?a=1&b=2', { sub: 'bob', scope: 'more' }],
    ['a percent-encoded query', 'POST /v1/test/slow?%61=1&b=%32', {}],
  ];
  for (const [what, line, { headers, ...options }] of variants) {
    const retry = await server.call(line, {
      ...base,
      ...options,
      headers: { 'if-match': 'W/"a", "b"', 'if-none-match': '"c"', ...headers },
    });
    assert.equal(retry.status, 201, `${what}: ${retry.text}`);
    assert.equal(retry.text, made.text, what);
  }
});

test('14. the order of the values of one query name counts', async (t) => {
  const server = await startServer(t, { procedures: createStage().procedures });
  const send = (query: string) => server.call(`POST /v1/test/slow?${query}`, { key: 'k', body: { cents: 1 } });
  assert.equal((await send('a=1&a=2')).status, 201);
  assert.deepEqual((await send('a=2&a=1')).json.differs, ['query']);
});

test('15. no body, an empty object and null under a key that is bound to a body are each another request', async (t) => {
  const server = await startServer(t, { procedures: createStage().procedures });
  const headers = { 'content-type': 'application/json' };
  const send = (body?: string) => server.call('POST /v1/test/slow', { key: 'k', headers, body });
  for (const isBound of [false, true]) {
    const none = await send();
    // Syntax comes before the key in either case.
    assert.deepEqual([none.status, none.json.code], [400, 'invalid_json']);
    for (const body of ['{}', 'null']) {
      const other = await send(body);
      const expected = isBound ? [409, 'idempotency_key_reused'] : [422, 'invalid_body'];
      assert.deepEqual([other.status, other.json.code], expected, body);
    }
    if (!isBound) assert.equal((await send('{"cents":1}')).status, 201);
  }
});

test('16. a corrected body after a 422 runs under the same key, which was never occupied', async (t) => {
  const server = await startServer(t);
  const sql = testSql(t, server.databaseUrl);
  const wrong = await server.call('POST /v1/orders', { key: 'k', body: { cents: 'much', item: 'pro-plan' } });
  assert.equal(wrong.status, 422);
  assert.deepEqual(
    wrong.json.issues.map((issue: { path: string }) => issue.path),
    ['/cents'],
  );
  assert.equal((await sql`select 1 from idem`).length, 0);
  const right = await server.call('POST /v1/orders', { key: 'k', body: { cents: 3_000, item: 'pro-plan' } });
  assert.equal(right.status, 201);
  assert.equal(right.headers.get('idempotent-replayed'), 'false');
});

test('a key that a build of tomorrow has bound is 503 here, with the key still good', async (t) => {
  const server = await startServer(t);
  const sql = testSql(t, server.databaseUrl);
  const send = () => server.call('POST /v1/orders', { key: 'k', body: { cents: 1, item: 'x' } });
  assert.equal((await send()).status, 201);
  await sql`update idem set fingerprint = '\\xff' || substring(fingerprint from 2)`;
  const unknown = await send();
  assert.deepEqual([unknown.status, unknown.json.code, unknown.json.key_action], [503, 'unavailable', 'reuse']);
  assert.equal(unknown.headers.get('retry-after'), '1');
});
