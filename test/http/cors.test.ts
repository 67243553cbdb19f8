import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exchange } from '../helpers/raw-socket.ts';
import { startServer } from '../helpers/server.ts';

const origin = 'https://app.example.com';
const names = (value: string | null) => new Set((value ?? '').toLowerCase().split(/, */));

test('23. a preflight allows the headers of the protocol and the methods of the path', async (t) => {
  const server = await startServer(t, { env: { CORS_ORIGINS: `${origin}, https://other.example.com` } });
  const preflight = await exchange(t, server.url, {
    line: 'OPTIONS /v1/orders',
    lines: [
      `Origin: ${origin}`,
      'Access-Control-Request-Method: POST',
      'Access-Control-Request-Headers: idempotency-key,content-type,authorization',
    ],
    isAuthorized: false,
  });
  assert.equal(preflight.status, 204);
  assert.equal(preflight.text, '');
  assert.equal(preflight.headers['access-control-allow-origin'], origin);
  assert.match(preflight.headers.vary ?? '', /Origin/);
  const methods = names(preflight.headers['access-control-allow-methods'] ?? null);
  assert.ok(methods.has('post') && methods.has('get'));
  const allowed = names(preflight.headers['access-control-allow-headers'] ?? null);
  for (const name of [
    'authorization',
    'content-type',
    'idempotency-key',
    'if-match',
    'if-none-match',
    'last-event-id',
    'prefer',
  ]) {
    assert.ok(allowed.has(name), name);
  }
});

test('23. the headers of the protocol are exposed on successes, on 304 and on errors', async (t) => {
  const server = await startServer(t, { env: { CORS_ORIGINS: origin } });
  const headers = { origin };
  const list = await server.call('GET /v1/orders', { headers });
  const etag = list.headers.get('etag') as string;
  const answers = {
    200: list,
    201: await server.call('POST /v1/orders', { key: 'k', body: { cents: 1, item: 'x' }, headers }),
    304: await server.call('GET /v1/orders?limit=20', { headers: { ...headers, 'if-none-match': '*' } }),
    400: await server.call('POST /v1/orders', { body: {}, headers }),
    401: await server.call('GET /v1/orders', { token: null, headers }),
    404: await server.call('GET /v1/nothing', { headers }),
    405: await server.call('DELETE /v1/orders', { headers }),
    409: await server.call('POST /v1/orders', { key: 'k', body: { cents: 2, item: 'x' }, headers }),
  };
  for (const [status, answer] of Object.entries(answers)) {
    assert.equal(String(answer.status), status, answer.text);
    assert.equal(answer.headers.get('access-control-allow-origin'), origin, status);
    assert.equal(answer.headers.get('access-control-allow-credentials'), null);
    const exposed = names(answer.headers.get('access-control-expose-headers'));
    for (const name of [
      'etag',
      'location',
      'retry-after',
      'idempotent-replayed',
      'idempotency-expires',
      'x-trace-id',
    ]) {
      assert.ok(exposed.has(name), `${status}: ${name}`);
    }
    assert.match(answer.headers.get('vary') ?? '', /origin/i, `${status}: caches must tell origins apart`);
  }
  assert.match(etag, /^W\//);
});

test('another origin, and any origin where none is configured, gets no CORS header', async (t) => {
  for (const origins of [origin, '']) {
    const server = await startServer(t, { env: { CORS_ORIGINS: origins } });
    const evil = { headers: { origin: 'https://evil.example' } };
    const answer = await server.call('GET /v1/orders', evil);
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get('access-control-allow-origin'), null);
    const preflight = await exchange(t, server.url, {
      line: 'OPTIONS /v1/orders',
      lines: ['Origin: https://evil.example', 'Access-Control-Request-Method: POST'],
    });
    assert.equal(preflight.headers['access-control-allow-origin'], undefined);
    assert.equal(preflight.headers['access-control-allow-methods'], undefined);
  }
});
