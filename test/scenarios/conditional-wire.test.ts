import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { assertProblem, createDoc, putDoc, tagOf } from '../helpers/docs.ts';
import { connectRaw, rawRequest } from '../helpers/raw-http.ts';
import { startServer, type TestServer, testToken } from '../helpers/server.ts';

const bearer = async (who?: Parameters<typeof testToken>[0]) => `Authorization: Bearer ${await testToken(who)}`;

test('29: one kept-alive connection serves 304, then 200, then 304 again, and HEAD in between', async (t) => {
  const server = await startServer(t);
  const tag = await createDoc(server, 'd');
  const connection = await connectRaw(t, server.url);
  const auth = await bearer();
  const ask = (line: string, ...lines: string[]) => {
    connection.send(rawRequest(line, [auth, ...lines]));
    return connection.answer(line.startsWith('HEAD'));
  };
  const unchanged = await ask('GET /v1/docs/d', `If-None-Match: ${tag}`);
  const read = await ask('GET /v1/docs/d', 'If-None-Match: "x"');
  const head = await ask('HEAD /v1/docs/d');
  const unchangedHead = await ask('HEAD /v1/docs/d', `If-None-Match: ${tag}`, 'Cache-Control: no-cache');
  const last = await ask('GET /v1/docs/d', 'If-None-Match: *', 'Cache-Control: no-cache', 'Pragma: no-cache');
  assert.deepEqual(
    [unchanged, read, head, unchangedHead, last].map((answer) => answer.status),
    [304, 200, 200, 304, 304],
  );
  assert.equal(JSON.parse(read.body).etag, tag);
  for (const answer of [unchanged, read, head, unchangedHead, last]) {
    assert.deepEqual(answer.values('etag'), [tag]);
    assert.deepEqual(answer.values('cache-control'), ['private, no-cache']);
    assert.deepEqual(answer.values('vary'), ['Authorization']);
    assert.equal(answer.values('date').length, 1);
    assert.equal(answer.values('x-trace-id').length, 1);
    assert.deepEqual(answer.values('last-modified'), []);
  }
  for (const answer of [unchanged, unchangedHead, last]) {
    assert.deepEqual(answer.values('content-type'), []);
    assert.deepEqual(answer.values('content-length'), []);
    assert.deepEqual(answer.values('transfer-encoding'), []);
  }
  const own = (line: string) => /^(date|x-trace-id|keep-alive):/i.test(line);
  assert.deepEqual(
    head.lines.filter((line) => !own(line)),
    read.lines.filter((line) => !own(line)),
  );
  assert.deepEqual(head.values('content-length'), [String(Buffer.byteLength(read.body))]);
});

test('29: 304 and 200 carry the same tag on every list and on an order, and dates and ranges are ignored', async (t) => {
  const server = await startServer(t);
  await createDoc(server, 'd');
  const order = await server.call('POST /v1/orders', { key: 'o', body: { cents: 1, item: 'x' } });
  for (const path of [
    '/v1/docs/d',
    '/v1/docs',
    '/v1/docs?limit=1',
    '/v1/orders',
    order.headers.get('location') as string,
  ]) {
    const read = await server.call(`GET ${path}`);
    const tag = tagOf(read);
    const ignored = {
      'if-modified-since': 'Fri, 01 Jan 2100 00:00:00 GMT',
      'if-unmodified-since': 'Thu, 01 Jan 1970 00:00:00 GMT',
      range: 'bytes=0-1',
      'if-range': tag,
    };
    const whole = await server.call(`GET ${path}`, { headers: ignored });
    assert.deepEqual([whole.status, whole.text, tagOf(whole)], [200, read.text, tag]);
    const same = await server.call(`GET ${path}`, { headers: { ...ignored, 'if-none-match': tag } });
    assert.deepEqual([same.status, same.text, tagOf(same)], [304, '', tag]);
    const head = await server.call(`HEAD ${path}`);
    assert.deepEqual(
      [head.status, head.text, tagOf(head), head.headers.get('content-length')],
      [200, '', tag, String(read.text.length)],
    );
  }
});

test('a GET judges If-Match first, then If-None-Match', async (t) => {
  const server = await startServer(t);
  const tag = await createDoc(server, 'd');
  const read = (ifMatch: string, ifNoneMatch: string) =>
    server.call('GET /v1/docs/d', { headers: { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } });
  assert.equal((await read(tag, tag)).status, 304);
  assert.equal((await read(tag, '"x"')).status, 200);
  assert.equal((await read('*', '"x"')).status, 200);
  const failed = await read('"x"', tag);
  assertProblem(failed, 412, 'precondition_failed');
  assert.deepEqual([tagOf(failed), failed.json.current_version, failed.json.changed_by], [tag, 1, 'alice']);
  assert.equal('key_action' in failed.json, false);
});

async function expecting(
  t: TestContext,
  server: TestServer,
  line: string,
  lines: readonly string[],
  length: number | 'chunked',
) {
  const connection = await connectRaw(t, server.url);
  const framing = length === 'chunked' ? 'Transfer-Encoding: chunked' : `Content-Length: ${length}`;
  connection.send(rawRequest(line, ['Content-Type: application/json', 'Expect: 100-continue', framing, ...lines]));
  return { connection, first: await connection.answer() };
}

test('Expect: 100-continue: what the head alone refuses is answered before the body is sent', async (t) => {
  const server = await startServer(t);
  const stale = await createDoc(server, 'd');
  const current = tagOf(await putDoc(server, 'd', stale));
  const [alice, bob] = [await bearer(), await bearer({ sub: 'bob' })];
  const unheardOf = current.replace('-v2.', '-v9.');
  const cases: [lines: string[], status: number, code: string, length?: number | 'chunked'][] = [
    [[bob, `If-Match: ${stale}`], 412, 'precondition_failed'],
    [[bob, `If-Match: ${stale}`], 412, 'precondition_failed', 'chunked'],
    [[bob, `If-Match: ${stale}`, 'Idempotency-Key: never-used'], 412, 'precondition_failed'],
    [[alice, `If-Match: ${unheardOf}`], 412, 'precondition_failed'],
    [[alice, 'If-None-Match: *'], 412, 'precondition_failed'],
    [[alice], 428, 'precondition_required'],
    [[alice, 'If-Match: x'], 400, 'precondition_invalid'],
    [[alice, `If-Match: ${current}`, 'Idempotency-Key: a b'], 400, 'idempotency_key_invalid'],
    [[alice, `If-Match: ${current}`], 413, 'body_too_large', 10_000_000],
    [[alice, `If-Match: ${current}`, 'Content-Encoding: gzip'], 415, 'unsupported_media_type'],
    [[`If-Match: ${current}`], 401, 'unauthenticated'],
  ];
  for (const [lines, status, code, length = 40] of cases) {
    const { first } = await expecting(t, server, 'PUT /v1/docs/d', lines, length);
    assert.deepEqual([first.status, JSON.parse(first.body).code], [status, code], lines.join(' '));
  }
  const { first } = await expecting(t, server, 'PUT /v1/docs/gone', [alice, `If-Match: ${current}`], 40);
  assert.equal(first.status, 404);
  const refused = await expecting(t, server, 'PUT /v1/docs/d', [bob, `If-Match: ${stale}`], 40);
  assert.deepEqual(refused.first.values('etag'), [current]);
});

test('Expect: 100-continue: whoever is refused before the body is told that the connection closes, so no body can be taken for a request', async (t) => {
  const server = await startServer(t);
  const stale = await createDoc(server, 'd');
  await putDoc(server, 'd', stale);
  const bob = await bearer({ sub: 'bob' });
  const { connection, first } = await expecting(t, server, 'PUT /v1/docs/d', [bob, `If-Match: ${stale}`], 40);
  assert.deepEqual([first.status, first.values('connection')], [412, ['close']]);
  await connection.closed;
});

test('Expect: 100-continue: a write that may pass is told to send its body, also one that may have been done already', async (t) => {
  const server = await startServer(t);
  const tag = await createDoc(server, 'd');
  const alice = await bearer();
  const body = JSON.stringify({ title: 'next', body: 'two' });
  for (const [status, version] of [
    [200, 2],
    [200, 2],
  ]) {
    const { connection, first } = await expecting(
      t,
      server,
      'PUT /v1/docs/d',
      [alice, `If-Match: ${tag}`],
      body.length,
    );
    assert.equal(first.status, 100);
    connection.send(body);
    const answer = await connection.answer();
    assert.deepEqual([answer.status, JSON.parse(answer.body).version], [status, version]);
  }
  const other = await expecting(t, server, 'PUT /v1/docs/d', [alice, `If-Match: ${tag}`], body.length);
  assert.equal(other.first.status, 100);
  other.connection.send(body.replace('two', 'owt'));
  assert.equal((await other.connection.answer()).status, 412);
});

test('Expect: 100-continue: a key that has an answer gets it, though the condition would fail now', async (t) => {
  const server = await startServer(t);
  const tag = await createDoc(server, 'd');
  const body = JSON.stringify({ title: 'next', body: 'two' });
  const put = await putDoc(server, 'd', tag, { sub: 'bob', key: 'k', body });
  await putDoc(server, 'd', tagOf(put), { body: { title: 'third', body: '3' } });
  const lines = [await bearer({ sub: 'bob' }), `If-Match: ${tag}`, 'Idempotency-Key: k'];
  const { connection, first } = await expecting(t, server, 'PUT /v1/docs/d', lines, body.length);
  assert.equal(first.status, 100);
  connection.send(body);
  const replayed = await connection.answer();
  assert.deepEqual([replayed.status, replayed.body, replayed.values('idempotent-replayed')], [200, put.text, ['true']]);
});

const page = 'https://app.example';

test('23: a preflight allows the methods and headers of conditional and keyed requests, without a token', async (t) => {
  const server = await startServer(t, { env: { CORS_ORIGINS: `${page},https://other.example` } });
  const ask = (path: string, origin: string) =>
    server.call(`OPTIONS ${path}`, {
      token: null,
      headers: { origin, 'access-control-request-method': 'PUT', 'access-control-request-headers': 'if-match' },
    });
  const allowed = await ask('/v1/docs/d', page);
  assert.equal(allowed.status, 204);
  assert.equal(allowed.headers.get('access-control-allow-origin'), page);
  assert.equal(allowed.headers.get('access-control-allow-credentials'), null);
  assert.equal(allowed.headers.get('vary'), 'Origin');
  const methods = (allowed.headers.get('access-control-allow-methods') ?? '').split(', ');
  for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE']) assert.ok(methods.includes(method), method);
  const headers = (allowed.headers.get('access-control-allow-headers') ?? '').toLowerCase().split(', ');
  for (const name of [
    'authorization',
    'content-type',
    'idempotency-key',
    'if-match',
    'if-none-match',
    'last-event-id',
    'prefer',
  ]) {
    assert.ok(headers.includes(name), name);
  }
  const stranger = await ask('/v1/docs/d', 'https://evil.example');
  assert.equal(stranger.headers.get('access-control-allow-origin'), null);
  assert.equal(stranger.headers.get('access-control-allow-methods'), null);
});

test('23: a page may read tag, trace and key headers of every answer, of 304 and of errors too', async (t) => {
  const server = await startServer(t, { env: { CORS_ORIGINS: page } });
  const tag = await createDoc(server, 'd');
  const from = (origin: string, headers = {}) => ({ headers: { origin, ...headers } });
  const answers = [
    await server.call('GET /v1/docs/d', from(page)),
    await server.call('GET /v1/docs/d', from(page, { 'if-none-match': tag })),
    await server.call('GET /v1/docs/none', from(page)),
    await server.call('GET /v1/nowhere', from(page)),
    await server.call('GET /v1/docs/d', { ...from(page), token: null }),
    await server.call('PUT /v1/docs/d', { ...from(page), body: {} }),
    await putDoc(server, 'd', '"x"', from(page)),
    await server.call('POST /v1/orders', { ...from(page), key: 'k', body: { cents: 1, item: 'x' } }),
    await server.call('POST /v1/orders', { ...from(page), key: 'k', body: { cents: 1, item: 'x' } }),
    await server.call('TRACK /v1/docs', from(page)).catch(() => undefined),
  ];
  const statuses: number[] = [];
  for (const answer of answers) {
    if (answer === undefined) continue;
    statuses.push(answer.status);
    assert.equal(answer.headers.get('access-control-allow-origin'), page, String(answer.status));
    const exposed = (answer.headers.get('access-control-expose-headers') ?? '').toLowerCase().split(', ');
    for (const name of [
      'etag',
      'location',
      'retry-after',
      'idempotent-replayed',
      'idempotency-expires',
      'x-trace-id',
    ]) {
      assert.ok(exposed.includes(name), `${name} on ${answer.status}`);
    }
    assert.match(answer.headers.get('vary') ?? '', /(^|, )Origin$/);
  }
  assert.deepEqual(statuses.slice(0, 9), [200, 304, 404, 404, 401, 428, 412, 201, 201]);
  assert.equal(answers[1]?.headers.get('vary'), 'Authorization, Origin');

  const stranger = await server.call('GET /v1/docs/d', from('https://evil.example'));
  assert.deepEqual([stranger.status, stranger.headers.get('access-control-allow-origin')], [200, null]);
  assert.equal((await server.call('GET /v1/docs/d')).headers.get('vary'), 'Authorization, Origin');
});

test('23: without configured origins no answer speaks of CORS', async (t) => {
  const server = await startServer(t);
  await createDoc(server, 'd');
  const read = await server.call('GET /v1/docs/d', { headers: { origin: page } });
  const preflight = await server.call('OPTIONS /v1/docs/d', { headers: { origin: page } });
  assert.deepEqual([read.status, preflight.status], [200, 405]);
  for (const answer of [read, preflight]) {
    assert.equal(
      [...answer.headers.keys()].some((name) => name.startsWith('access-control')),
      false,
    );
  }
});
