import assert from 'node:assert/strict';
import { test } from 'node:test';
import { base64url, SignJWT } from 'jose';
import { createAuthenticate, signToken } from '../../src/auth/tokens.ts';
import { Problem } from '../../src/protocol/errors.ts';
import { startServer, testSecret } from '../helpers/server.ts';

const key = new TextEncoder().encode(testSecret);
const nowSeconds = () => Math.floor(Date.now() / 1_000);

/** A token with these claims; undefined ones are left out. */
function sign(claims: Record<string, unknown>, header: Record<string, unknown> = {}, secret = key): Promise<string> {
  const whole = { tenant: 'acme', sub: 'alice', exp: nowSeconds() + 60, ...claims };
  const given = Object.fromEntries(Object.entries(whole).filter(([, value]) => value !== undefined));
  return new SignJWT(given).setProtectedHeader({ alg: 'HS256', ...header }).sign(secret);
}

const unsigned = (header: object, claims: object) =>
  `${base64url.encode(JSON.stringify(header))}.${base64url.encode(JSON.stringify(claims))}.`;

const goodClaims = () => ({ tenant: 'acme', sub: 'alice', exp: nowSeconds() + 60 });

/** Authorization lines that must be refused. */
async function badLines(): Promise<[what: string, lines: string[] | undefined][]> {
  const good = await sign({});
  const [header = '', claims = '', signature = ''] = good.split('.');
  const bearer = (token: string) => [`Bearer ${token}`];
  const flipped = `${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`;
  return [
    ['no header', undefined],
    ['an empty one', ['']],
    ['two', [`Bearer ${good}`, `Bearer ${good}`]],
    ['Basic', ['Basic YWxpY2U6eA==']],
    ['no scheme', [good]],
    ['no token', ['Bearer ']],
    ['two tokens', [`Bearer ${good} ${good}`]],
    ['two joined by a comma', [`Bearer ${good}, Bearer ${good}`]],
    ['no JWT', bearer('abc')],
    ['alg none', bearer(unsigned({ alg: 'none' }, goodClaims()))],
    ['alg none in capitals', bearer(unsigned({ alg: 'NONE' }, goodClaims()))],
    ['alg none with our signature', bearer(`${base64url.encode('{"alg":"none"}')}.${claims}.${signature}`)],
    ['another algorithm of the same secret', bearer(await sign({}, { alg: 'HS512' }))],
    ['another secret', bearer(await sign({}, {}, new TextEncoder().encode('another secret that is long enough!!')))],
    ['a changed signature', bearer(`${header}.${claims}.${flipped}`)],
    ['no signature', bearer(`${header}.${claims}.`)],
    [
      'changed claims',
      bearer(`${header}.${base64url.encode(JSON.stringify({ ...goodClaims(), tenant: 'globex' }))}.${signature}`),
    ],
    ['expired', bearer(await sign({ exp: nowSeconds() - 60 }))],
    ['no exp', bearer(await sign({ exp: undefined }))],
    [
      'an exp that is text',
      bearer(await sign({ exp: 'tomorrow' as never }).catch(() => unsigned({ alg: 'HS256' }, {}))),
    ],
    ['not valid yet', bearer(await sign({ nbf: nowSeconds() + 60 }))],
    ['no sub', bearer(await sign({ sub: undefined }))],
    ['an empty sub', bearer(await sign({ sub: '' }))],
    ['a control byte in sub', bearer(await sign({ sub: 'a\u0000b' }))],
    ['a sub of 256 characters', bearer(await sign({ sub: 'a'.repeat(256) }))],
    ['no tenant', bearer(await sign({ tenant: undefined }))],
    ['an empty tenant', bearer(await sign({ tenant: '' }))],
    ['a tenant of 65 characters', bearer(await sign({ tenant: 'a'.repeat(65) }))],
    ['a tenant with a blank', bearer(await sign({ tenant: 'ac me' }))],
    ['a tenant with a slash', bearer(await sign({ tenant: '../globex' }))],
    ['a tenant with a line feed', bearer(await sign({ tenant: 'acme\n' }))],
    ['a tenant of other letters', bearer(await sign({ tenant: 'аcme' }))],
    ['a tenant that is a list', bearer(await sign({ tenant: ['acme'] }))],
    ['a tenant that is a number', bearer(await sign({ tenant: 1 }))],
    ['a scope that is a list', bearer(await sign({ scope: ['credits:write'] }))],
    [
      'critical headers that nobody knows',
      bearer(
        await sign({}).then(
          (t) => `${base64url.encode('{"alg":"HS256","crit":["x"],"x":1}')}.${t.split('.').slice(1).join('.')}`,
        ),
      ),
    ],
    ['10,000 characters', bearer(await sign({ filler: 'x'.repeat(10_000) }))],
  ];
}

test('44. a token that is missing, forged, out of its time or odd in any claim is refused', async () => {
  const authenticate = createAuthenticate({ secret: testSecret });
  for (const [what, lines] of await badLines()) {
    await assert.rejects(
      authenticate(lines),
      (error) => {
        assert.ok(error instanceof Problem, what);
        assert.equal(error.code, 'unauthenticated', what);
        assert.match(error.options.headers?.['WWW-Authenticate'] ?? '', /^Bearer/, what);
        return true;
      },
      what,
    );
  }
});

test('44. over HTTP a refused token is 401 with a challenge and no hint why, and the connection stays', async (t) => {
  const server = await startServer(t);
  for (const [what, lines] of await badLines()) {
    if (lines !== undefined && (lines.length !== 1 || !/^[\x20-\x7e]*$/.test(lines[0] as string))) continue;
    const answer = await server.call('POST /v1/orders', {
      token: null,
      key: 'k',
      body: { cents: 1, item: 'x' },
      headers: lines === undefined ? {} : { authorization: lines[0] as string },
    });
    assert.deepEqual([answer.status, answer.json.code], [401, 'unauthenticated'], what);
    assert.match(answer.headers.get('www-authenticate') ?? '', /^Bearer/, what);
    assert.equal(answer.json.message, 'Send a valid bearer token in the Authorization header.', what);
  }
  assert.equal((await server.call('GET /v1/orders')).json.items.length, 0);
});

test('a principal is what the verified claims say: tenant, sub and scopes', async () => {
  const authenticate = createAuthenticate({ secret: testSecret });
  const who = async (claims: Record<string, unknown>) => {
    const { tenant, sub, scopes } = await authenticate([`bearer  ${await sign(claims)}`]);
    return { tenant, sub, scopes: [...scopes] };
  };
  assert.deepEqual(await who({}), { tenant: 'acme', sub: 'alice', scopes: [] });
  assert.deepEqual(await who({ tenant: 'A.b_c-9'.padEnd(64, 'x'), sub: 'ü 😀', scope: ' a  b ' }), {
    tenant: 'A.b_c-9'.padEnd(64, 'x'),
    sub: 'ü 😀',
    scopes: ['a', 'b'],
  });
});

test('a remembered token ends with its exp, and none is remembered for longer than half a minute', async () => {
  let nowMs = Date.now();
  const authenticate = createAuthenticate({ secret: testSecret }, () => nowMs);
  const short = [`Bearer ${await sign({ exp: nowSeconds() + 20 })}`];
  await authenticate(short);
  nowMs += 19_000;
  await authenticate(short);
  nowMs += 10_000;
  await assert.rejects(authenticate(short), { code: 'unauthenticated' });
});

test('issuer and audience are asked for when they are configured', async () => {
  const settings = { secret: testSecret, issuer: 'https://issuer.example', audience: 'retry-safe' };
  const authenticate = createAuthenticate(settings);
  const signed = await signToken(testSecret, { tenant: 'acme', sub: 'alice' }, 60, settings);
  assert.equal((await authenticate([`Bearer ${signed}`])).tenant, 'acme');
  for (const claims of [
    {},
    { iss: settings.issuer },
    { iss: 'x', aud: settings.audience },
    { iss: settings.issuer, aud: 'x' },
  ]) {
    await assert.rejects(authenticate([`Bearer ${await sign(claims)}`]), { code: 'unauthenticated' });
  }
});

test('the tenant comes from the token alone: no header, query or body can name another', async (t) => {
  const server = await startServer(t);
  const theirs = await server.call('POST /v1/orders', {
    tenant: 'globex',
    key: 'k',
    body: { cents: 7, item: 'theirs' },
  });
  const headers = { 'x-tenant': 'globex', 'x-tenant-id': 'globex', tenant: 'globex', 'x-forwarded-user': 'globex' };
  const list = await server.call('GET /v1/orders?tenant=globex&tenant_id=globex', { headers });
  assert.deepEqual(list.json.items, []);
  const named = await server.call('POST /v1/orders?tenant=globex', {
    key: 'k',
    headers,
    body: { cents: 1, item: 'ours' },
  });
  assert.equal(named.status, 201);
  assert.equal((await server.call('GET /v1/orders', { tenant: 'globex' })).json.items.length, 1);
  const asTheirs = await server.call('POST /v1/orders', { key: 'k2', body: { cents: 1, item: 'x', tenant: 'globex' } });
  assert.equal(asTheirs.status, 422);

  // What belongs to another tenant and what never was are told alike.
  const strip = ({ trace_id: _, ...rest }: Record<string, unknown>) => rest;
  const foreign = await server.call(`GET /v1/orders/${theirs.json.order_id}`);
  const never = await server.call(`GET /v1/orders/ord_${'0'.repeat(32)}`);
  assert.deepEqual([foreign.status, never.status], [404, 404]);
  assert.deepEqual(strip(foreign.json), strip(never.json));
  const conditional = await server.call(`GET /v1/orders/${theirs.json.order_id}`, {
    headers: { 'if-none-match': '*' },
  });
  assert.equal(conditional.status, 404);
});

test('a cursor of one tenant is refused for another and for another list', async (t) => {
  const server = await startServer(t);
  for (const tenant of ['acme', 'globex']) {
    for (const key of ['1', '2', '3'])
      await server.call('POST /v1/orders', { tenant, key, body: { cents: 1, item: 'x' } });
  }
  const { next } = (await server.call('GET /v1/orders?limit=2')).json;
  assert.equal((await server.call(`GET /v1/orders?limit=2&after=${next}`)).json.items.length, 1);
  const other = await server.call(`GET /v1/orders?limit=2&after=${next}`, { tenant: 'globex' });
  assert.deepEqual([other.status, other.json.code], [400, 'invalid_cursor']);
});
