import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { connectRaw, exchange, type RawRequest, rawRequest } from '../helpers/raw-socket.ts';
import { startServer, type TestServer } from '../helpers/server.ts';
import { countOrders, testSql } from '../helpers/sql.ts';

const valid = '{"cents":1,"item":"x"}';
const key = 'Idempotency-Key: k';
const json = 'Content-Type: application/json';
const order = (body: string | Uint8Array, ...lines: string[]): RawRequest => ({
  line: 'POST /v1/orders',
  lines: [key, ...lines],
  body,
});

type Case = readonly [what: string, request: RawRequest, status: number, code: string];

const deep = 100_000;
const refusals: readonly Case[] = [
  ['an unknown route', { line: 'GET /v1/nothing' }, 404, 'not_found'],
  [
    'no token, with a body nobody reads',
    { ...order('x'.repeat(100_000)), isAuthorized: false },
    401,
    'unauthenticated',
  ],
  ['a trailing slash', { line: 'GET /v1/orders/' }, 404, 'not_found'],
  ['a path of 3,000 characters', { line: `GET /${'a'.repeat(3_000)}` }, 404, 'not_found'],
  ['an escaped NUL in the path', { line: 'GET /v1/orders/%00' }, 404, 'not_found'],
  ['an escaped NUL in a key', { line: 'GET /v1/idempotency-keys/a%00b' }, 404, 'not_found'],
  ['escaped dots', { line: 'GET /v1/orders/%2e%2e' }, 404, 'not_found'],
  ['escaped dots and slashes', { line: 'GET /v1/orders/..%2f..%2fetc%2fpasswd' }, 404, 'not_found'],
  ['dots', { line: 'GET /v1/../v1/orders' }, 404, 'not_found'],
  ['half an escape', { line: 'GET /v1/orders/%4' }, 404, 'not_found'],
  ['invalid UTF-8 in the path', { line: 'GET /v1/orders/%ff%fe' }, 404, 'not_found'],
  ['an id that is no id', { line: "GET /v1/orders/ord_'or'1'='1" }, 404, 'not_found'],
  ['an id that is almost one', { line: `GET /v1/orders/ord_${'g'.repeat(32)}` }, 404, 'not_found'],
  ['an unknown method', { line: 'PROPFIND /v1/orders' }, 405, 'method_not_allowed'],
  ['a method that the path lacks', { line: 'DELETE /v1/orders' }, 405, 'method_not_allowed'],
  ['TRACE', { line: 'TRACE /v1/orders' }, 405, 'method_not_allowed'],
  [
    'OPTIONS without CORS',
    { line: 'OPTIONS /v1/orders', lines: ['Origin: https://a.example'] },
    405,
    'method_not_allowed',
  ],
  ['a GET with a body', { line: 'GET /v1/orders', body: '{}' }, 400, 'unexpected_body'],
  [
    'a chunked GET',
    { line: 'GET /v1/orders', lines: ['Transfer-Encoding: chunked'], body: '0\r\n\r\n' },
    400,
    'unexpected_body',
  ],
  ['a limit that is no number', { line: 'GET /v1/orders?limit=1e1' }, 400, 'invalid_query'],
  ['a limit of zero', { line: 'GET /v1/orders?limit=0' }, 400, 'invalid_query'],
  ['a limit of 101', { line: 'GET /v1/orders?limit=101' }, 400, 'invalid_query'],
  ['a limit that comes twice', { line: 'GET /v1/orders?limit=1&limit=1' }, 400, 'invalid_query'],
  ['a cursor nobody made', { line: 'GET /v1/orders?after=abc' }, 400, 'invalid_cursor'],
  ['an empty cursor', { line: 'GET /v1/orders?after=' }, 400, 'invalid_cursor'],
  ['a NUL in the cursor', { line: 'GET /v1/orders?after=%00' }, 400, 'invalid_cursor'],
  [
    'no media type',
    { line: 'POST /v1/orders', lines: [key, 'Content-Type:'], body: valid },
    415,
    'unsupported_media_type',
  ],
  ['another media type', order(valid, 'Content-Type: text/plain'), 415, 'unsupported_media_type'],
  ['a merge patch', order(valid, 'Content-Type: application/merge-patch+json'), 415, 'unsupported_media_type'],
  ['a form', order('cents=1', 'Content-Type: application/x-www-form-urlencoded'), 415, 'unsupported_media_type'],
  ['another charset', order(valid, `${json}; charset=utf-16`), 415, 'unsupported_media_type'],
  ['a compressed body', order(valid, json, 'Content-Encoding: gzip'), 415, 'unsupported_media_type'],
  ['an empty body', order(''), 400, 'invalid_json'],
  ['white space', order(' \r\n\t'), 400, 'invalid_json'],
  ['a byte order mark', order(`\ufeff${valid}`), 400, 'invalid_json'],
  ['invalid UTF-8', order(Buffer.from([0x22, 0xc3, 0x28, 0x22])), 400, 'invalid_json'],
  ['UTF-16', order(Buffer.from(valid, 'utf16le')), 400, 'invalid_json'],
  ['a NUL byte', order(`{"cents":1,"item":"a\u0000b"}`), 400, 'invalid_json'],
  ['something behind the value', order(`${valid}x`), 400, 'invalid_json'],
  ['two members of one name', order('{"cents":1,"cents":1,"item":"x"}'), 400, 'invalid_json'],
  ['an unsafe integer', order('{"cents":9007199254740993,"item":"x"}'), 400, 'invalid_json'],
  ['a number beyond doubles', order('{"cents":1e999,"item":"x"}'), 400, 'invalid_json'],
  ['100,000 brackets', order('['.repeat(deep)), 400, 'invalid_json'],
  ['100,000 brackets that close', order('['.repeat(deep) + ']'.repeat(deep)), 400, 'invalid_json'],
  ['100,000 objects', order('{"a":'.repeat(deep)), 400, 'invalid_json'],
  ['nesting of 65', order(`{"cents":1,"item":${'['.repeat(65)}${']'.repeat(65)}}`), 400, 'invalid_json'],
  ['an escaped NUL', order('{"cents":1,"item":"a\\u0000b"}'), 422, 'invalid_body'],
  ['a lone surrogate', order('{"cents":1,"item":"\\ud800"}'), 422, 'invalid_body'],
  ['an unknown member', order('{"cents":1,"item":"x","tenant":"globex"}'), 422, 'invalid_body'],
  ['a member called __proto__', order('{"cents":1,"item":"x","__proto__":{}}'), 422, 'invalid_body'],
  ['no cents', order('{"cents":0,"item":"x"}'), 422, 'invalid_body'],
  ['too many cents', order('{"cents":1000000001,"item":"x"}'), 422, 'invalid_body'],
  ['half a cent', order('{"cents":0.5,"item":"x"}'), 422, 'invalid_body'],
  ['cents as text', order('{"cents":"1","item":"x"}'), 422, 'invalid_body'],
  ['no item', order('{"cents":1,"item":""}'), 422, 'invalid_body'],
  ['an item of 201 characters', order(`{"cents":1,"item":"${'😀'.repeat(201)}"}`), 422, 'invalid_body'],
  ['an array', order('[]'), 422, 'invalid_body'],
  ['null', order('null'), 422, 'invalid_body'],
  [
    '100,000 wrong members',
    order(`{${Array.from({ length: 50_000 }, (_, i) => `"m${i}":1`).join(',')}}`),
    422,
    'invalid_body',
  ],
];

test('44, 45. bad input gets its 4xx with a code and a trace id, changes nothing, and the connection goes on being served', async (t) => {
  const server = await startServer(t);
  const sql = testSql(t, server.databaseUrl);
  const connection = await connectRaw(t, server.url);
  for (const [what, request, status, code] of refusals) {
    connection.send(await rawRequest(request));
    const answer = await connection.answer();
    assert.deepEqual([answer.status, answer.json.code], [status, code], `${what}: ${answer.text.slice(0, 300)}`);
    assert.equal(answer.headers['content-type'], 'application/problem+json', what);
    assert.equal(answer.headers['cache-control'], 'no-store', what);
    assert.equal(answer.headers.etag, undefined, what);
    assert.match(answer.json.trace_id, /^[0-9a-f]{32}$/, what);
    assert.equal(answer.headers['x-trace-id'], answer.json.trace_id, what);
    assert.equal(answer.json.status, status, what);
    assert.ok(answer.json.message.length > 10 && answer.text.length < 8_000, what);
    assert.notEqual(answer.headers.connection, 'close', what);
  }
  assert.equal(await countOrders(sql), 0);
  assert.equal((await sql`select 1 from idem`).length, 0);
  connection.send(await rawRequest(order(valid)));
  assert.equal((await connection.answer()).status, 201);
});

test('what is merely unusual is served', async (t) => {
  const server = await startServer(t);
  const usual: readonly [what: string, request: RawRequest, status: number][] = [
    ['charset=utf-8', order(valid, `${json}; charset=utf-8`), 201],
    ['a quoted charset', order(valid, 'content-type: Application/JSON;charset="UTF-8"'), 201],
    ['an identity encoding', order(valid, json, 'Content-Encoding: identity'), 201],
    ['nesting of 64 in a wrong body', order(`${'['.repeat(64)}${']'.repeat(64)}`), 409],
    [
      'an item of 200 astral characters',
      { ...order(`{"cents":1,"item":"${'😀'.repeat(200)}"}`), lines: ['Idempotency-Key: u'] },
      201,
    ],
    [
      'chunked',
      { line: 'POST /v1/orders', lines: [key, 'Transfer-Encoding: chunked'], body: `16\r\n${valid}\r\n0\r\n\r\n` },
      201,
    ],
    ['a GET with Content-Length: 0', { line: 'GET /v1/orders', lines: ['Content-Length: 0'] }, 200],
    ['unknown query names', { line: 'GET /v1/orders?utm_source=a&limit=1&%ff=%00' }, 200],
    ['an escaped letter in the path', { line: 'GET /v1/%6frders' }, 200],
    ['the absolute form', { line: 'GET http://test/v1/orders' }, 200],
    ['HEAD', { line: 'HEAD /v1/orders' }, 200],
  ];
  for (const [what, request, status] of usual) {
    const answer = await exchange(t, server.url, request);
    assert.equal(answer.status, status, `${what}: ${answer.text}`);
  }
});

test('a body beyond the limit is refused by its announcement or at its first byte too many, and the connection is closed', async (t) => {
  const server = await startServer(t, { env: { MAX_BODY_BYTES: '1000' } });
  const fits = `{"cents":1,"item":"${'x'.repeat(100)}"}`.padEnd(1_000);
  assert.equal((await exchange(t, server.url, order(fits))).status, 201);

  const announced = await connectRaw(t, server.url);
  announced.send(await rawRequest(order('', 'Content-Length: 10485760')));
  const early = await announced.answer();
  assert.deepEqual([early.status, early.json.code], [413, 'body_too_large']);
  assert.equal(early.headers.connection, 'close');
  await announced.closed;

  const chunked = await connectRaw(t, server.url);
  chunked.send(await rawRequest(order('', 'Transfer-Encoding: chunked')));
  const chunk = Buffer.from(`200\r\n${'x'.repeat(512)}\r\n`);
  chunked.send(Buffer.concat([chunk, chunk]));
  const late = await chunked.answer();
  assert.deepEqual([late.status, late.json.code], [413, 'body_too_large']);
  await chunked.closed;
  await assertServes(server);
});

test('a gigabyte sent in chunks is cut off, and memory stays flat', async (t) => {
  const server = await startServer(t);
  const before = process.memoryUsage().rss;
  const connection = await connectRaw(t, server.url);
  connection.send(await rawRequest(order('', 'Transfer-Encoding: chunked')));
  const chunk = Buffer.concat([Buffer.from('10000\r\n'), Buffer.alloc(65_536, 'x'), Buffer.from('\r\n')]);
  let sent = 0;
  let isOver = false;
  void connection.closed.then(() => {
    isOver = true;
  });
  while (!isOver && sent < 2 ** 30) {
    sent += chunk.length;
    if (!connection.socket.write(chunk)) {
      await Promise.race([connection.closed, new Promise((resolve) => connection.socket.once('drain', resolve))]);
    }
  }
  await connection.closed;
  const grownMb = (process.memoryUsage().rss - before) / 2 ** 20;
  t.diagnostic(`cut off after ${Math.round(sent / 2 ** 20)} MB, memory grew by ${Math.round(grownMb)} MB`);
  assert.ok(isOver && sent < 2 ** 30);
  assert.ok(grownMb < 150);
  await assertServes(server);
});

test('a stalled head and a stalled body are ended with 408 in bounded time, without a claim', async (t) => {
  const server = await startServer(t, { env: { REQUEST_TIMEOUT_MS: '300' } });
  const sql = testSql(t, server.databaseUrl);
  const head = await connectRaw(t, server.url);
  head.send('POST /v1/orders HTTP/1.1\r\nHost: test\r\nIdempotency-Key: k');
  const body = await connectRaw(t, server.url);
  body.send(await rawRequest(order('{"cents"', 'Content-Length: 100')));
  const silent = await connectRaw(t, server.url);
  silent.send('G');

  const late = await body.answer();
  assert.deepEqual([late.status, late.json.code], [408, 'request_timeout']);
  assert.match(late.json.trace_id, /^[0-9a-f]{32}$/);
  assert.equal(late.headers.connection, 'close');
  const cut = await head.answer();
  assert.deepEqual([cut.status, cut.json.code], [408, 'request_timeout']);
  await Promise.all([head.closed, body.closed, silent.closed]);
  assert.equal((await sql`select 1 from idem`).length, 0);
  await assertServes(server);
});

test('20 kB of headers are 431, and the connection is closed', async (t) => {
  const server = await startServer(t);
  for (const lines of [
    [`X-Large: ${'x'.repeat(20_000)}`],
    Array.from({ length: 1_000 }, (_, i) => `X-${i}: ${'x'.repeat(15)}`),
  ]) {
    const connection = await connectRaw(t, server.url);
    connection.send(await rawRequest({ line: 'GET /v1/orders', lines }));
    const answer = await connection.answer();
    assert.deepEqual([answer.status, answer.json.code], [431, 'headers_too_large']);
    assert.equal(answer.headers.connection, 'close');
    await connection.closed;
  }
  await assertServes(server);
});

test('what is no HTTP, or could be read in two ways, is 400 and a closed connection', async (t) => {
  const server = await startServer(t);
  const sql = testSql(t, server.databaseUrl);
  const framed = async (...lines: string[]) => rawRequest(order(valid, json, ...lines));
  const cases: readonly [what: string, bytes: string | Uint8Array][] = [
    ['a TLS handshake', Buffer.from('16030100a5010000a10303', 'hex')],
    ['nonsense', 'hello\r\n\r\n'],
    ['an unknown method token', 'G@T / HTTP/1.1\r\nHost: test\r\n\r\n'],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['lines that end in a bare LF', 'GET /v1/orders HTTP/1.1\nHost: test\n\n'],
    ['a bare CR in a header', 'GET /v1/orders HTTP/1.1\r\nHost: test\r\nX-A: b\rX-B: c\r\n\r\n'],
    ['no Host', 'GET /v1/orders HTTP/1.1\r\n\r\n'],
    ['two Hosts', 'GET /v1/orders HTTP/1.1\r\nHost: test\r\nHost: test\r\n\r\n'],
    ['a blank before the colon', 'GET / HTTP/1.1\r\nHost : test\r\n\r\n'],
    ['a folded header', 'GET / HTTP/1.1\r\nHost: test\r\nX-A: b\r\n c\r\n\r\n'],
    ['Content-Length and Transfer-Encoding', await framed('Content-Length: 22', 'Transfer-Encoding: chunked')],
    ['two lengths', await framed('Content-Length: 22', 'Content-Length: 23')],
    ['a negative length', await framed('Content-Length: -1')],
    ['a length with a sign', await framed('Content-Length: +22')],
    ['an unknown transfer coding', await framed('Transfer-Encoding: gzip')],
    [
      'a chunk size that is no number',
      Buffer.concat([await framed('Transfer-Encoding: chunked'), Buffer.from('\r\nzz\r\n')]),
    ],
  ];
  for (const [what, bytes] of cases) {
    const connection = await connectRaw(t, server.url);
    connection.send(bytes);
    const answer = await connection.answer();
    assert.ok(answer.status === 400 || answer.status === 505, `${what}: ${answer.status}`);
    assert.match(answer.headers['content-type'] ?? '', /problem\+json/, what);
    assert.equal(answer.json.code, 'bad_request', what);
    assert.equal(answer.headers.connection, 'close', what);
    await connection.closed;
  }
  assert.equal(await countOrders(sql), 0);
  await assertServes(server);
});

test('pipelined requests are answered in their order, each once', async (t) => {
  const server = await startServer(t);
  const sql = testSql(t, server.databaseUrl);
  const connection = await connectRaw(t, server.url);
  connection.send(
    Buffer.concat(
      await Promise.all([
        rawRequest(order(valid)),
        rawRequest(order(valid)),
        rawRequest({ line: 'GET /v1/nothing' }),
        rawRequest(order('{')),
        rawRequest({ line: 'GET /v1/orders' }),
      ]),
    ),
  );
  const answers = [];
  for (let i = 0; i < 5; i += 1) answers.push(await connection.answer());
  assert.deepEqual(answers.map((answer) => answer.status).slice(2), [404, 400, 200]);
  // The second may be told that the first still runs: they were sent at once.
  assert.equal(answers[0]?.status === 201 || answers[1]?.status === 201, true);
  assert.equal(await countOrders(sql), 1);
});

test('Expect: 100-continue is refused by the head where it can be, else continued; another expectation is 417', async (t) => {
  const server = await startServer(t);
  const expect = 'Expect: 100-continue';
  const connection = await connectRaw(t, server.url);
  connection.send(await rawRequest(order('', json, expect, `Content-Length: ${valid.length}`)));
  assert.equal((await connection.answer()).status, 100);
  connection.send(valid);
  assert.equal((await connection.answer()).status, 201);

  const refusedEarly = await connectRaw(t, server.url);
  refusedEarly.send(await rawRequest({ line: 'POST /v1/orders', lines: [expect, 'Content-Length: 1000', json] }));
  assert.equal((await refusedEarly.answer()).json.code, 'idempotency_key_required');

  connection.send(await rawRequest(order(valid, 'Expect: a-miracle')));
  const strange = await connection.answer();
  assert.deepEqual([strange.status, strange.json.code], [417, 'expectation_failed']);
  connection.send(await rawRequest(order(valid)));
  assert.equal((await connection.answer()).status, 201, 'the connection goes on');
});

test('CONNECT and Upgrade are not taken', async (t) => {
  const server = await startServer(t);
  const tunnel = await connectRaw(t, server.url);
  tunnel.send('CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n');
  assert.equal((await tunnel.answer()).status, 405);
  await tunnel.closed;
  const upgrade = await exchange(t, server.url, {
    line: 'GET /v1/orders',
    lines: ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Key: x'],
  });
  assert.equal(upgrade.status, 200);
});

async function assertServes(server: TestServer): Promise<void> {
  assert.equal((await server.call('POST /v1/orders', { key: 'still', body: { cents: 1, item: 'x' } })).status, 201);
}

test('a client that sends nothing, half a request or garbage and leaves takes nothing with it', async (t: TestContext) => {
  const server = await startServer(t);
  const whole = await rawRequest(order(valid));
  for (const length of [0, 1, 20, whole.length - 30, whole.length - 1]) {
    const connection = await connectRaw(t, server.url);
    connection.send(whole.subarray(0, length));
    connection.socket.destroy();
    await connection.closed;
  }
  const sql = testSql(t, server.databaseUrl);
  await assertServes(server);
  assert.equal(await countOrders(sql), 1);
});
