import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { createAuthenticate } from '../../src/auth/tokens.ts';
import { atEnd } from '../helpers/cleanup.ts';

type PrivateKey = Awaited<ReturnType<typeof generateKeyPair>>['privateKey'];
type Key = { kid: string; alg: string; privateKey: PrivateKey; jwk: object };

async function makeKey(kid: string, alg: string): Promise<Key> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } };
}

async function bearer({ kid, alg, privateKey }: Key, claims: object = {}): Promise<string[]> {
  const token = new SignJWT({ tenant: 'acme', ...claims })
    .setProtectedHeader({ alg, kid })
    .setSubject('alice')
    .setExpirationTime('1m');
  return [`Bearer ${await token.sign(privateKey)}`];
}

/** A key set on a local server; `state` is what it answers. */
async function keySet(t: TestContext, keys: Key[]) {
  const state = { keys, status: 200, asked: 0, hangs: false, raw: undefined as string | undefined };
  const server = createServer((_req, res) => {
    state.asked += 1;
    if (state.hangs) return;
    res.writeHead(state.status, { 'content-type': 'application/json' });
    res.end(state.raw ?? JSON.stringify({ keys: state.keys.map((key) => key.jwk) }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(t, () => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`;
  return { state, authenticate: createAuthenticate({ jwksUrl: url }) };
}

test('RS256, ES256 and EdDSA tokens are verified by the key set, which is fetched once', async (t) => {
  const keys = await Promise.all(['RS256', 'ES256', 'EdDSA'].map((alg) => makeKey(alg, alg)));
  const { state, authenticate } = await keySet(t, keys);
  for (const key of keys) assert.equal((await authenticate(await bearer(key))).tenant, 'acme');
  assert.equal(state.asked, 1);
});

test('other algorithms are refused although a key would fit: HS256 with the public key, PS256, none', async (t) => {
  const rsa = await makeKey('rsa', 'RS256');
  const ps = await makeKey('ps', 'PS256');
  const { authenticate } = await keySet(t, [rsa, ps]);
  await assert.rejects(authenticate(await bearer(ps)), { code: 'unauthenticated' });
  const confused = new SignJWT({ tenant: 'acme' }).setProtectedHeader({ alg: 'HS256', kid: 'rsa' }).setSubject('a');
  const asSecret = new TextEncoder().encode(JSON.stringify(rsa.jwk));
  const forged = await confused.setExpirationTime('1m').sign(asSecret);
  await assert.rejects(authenticate([`Bearer ${forged}`]), { code: 'unauthenticated' });
});

test('a key that nobody published is refused, and asking for it again and again does not flood the key set', async (t) => {
  const known = await makeKey('known', 'ES256');
  const stranger = await makeKey('stranger', 'ES256');
  const { state, authenticate } = await keySet(t, [known]);
  await authenticate(await bearer(known));
  for (let i = 0; i < 20; i += 1) {
    await assert.rejects(authenticate(await bearer(stranger, { i })), { code: 'unauthenticated' });
  }
  assert.ok(state.asked <= 2, `asked ${state.asked} times`);
});

test('a key that is added to the set works without a restart, and one that is taken out stops working soon', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() });
  const old = await makeKey('old', 'ES256');
  const next = await makeKey('next', 'ES256');
  const { state, authenticate } = await keySet(t, [old]);
  const oldToken = await bearer(old);
  await authenticate(oldToken);
  state.keys = [next];
  // An unknown key makes the set be asked for again, at most every five seconds.
  t.mock.timers.tick(6_000);
  assert.equal((await authenticate(await bearer(next))).tenant, 'acme');
  t.mock.timers.tick(31_000);
  await assert.rejects(authenticate(oldToken), { code: 'unauthenticated' });
});

test('while the key set is away, a token is neither accepted nor refused: 503, and it works when the set is back', async (t) => {
  const key = await makeKey('k', 'ES256');
  const { state, authenticate } = await keySet(t, [key]);
  for (const status of [500, 503, 404]) {
    state.status = status;
    await assert.rejects(authenticate(await bearer(key)), { code: 'unavailable' }, String(status));
  }
  state.status = 200;
  assert.equal((await authenticate(await bearer(key))).sub, 'alice');
});

test('a key set that nobody serves, or that answers something else, is 503', async (t) => {
  const key = await makeKey('k', 'ES256');
  const { state, authenticate } = await keySet(t, [key]);
  for (const raw of ['<html>', '', '[]', '{}', '{"keys":{}}', 'null']) {
    state.raw = raw;
    await assert.rejects(authenticate(await bearer(key)), { code: 'unavailable' }, raw);
  }
  const nobody = createAuthenticate({ jwksUrl: 'http://127.0.0.1:1/jwks.json' });
  await assert.rejects(nobody(await bearer(key)), { code: 'unavailable' });
});

test('a key set that does not answer is given up after its time limit: 503', async (t) => {
  const key = await makeKey('k', 'ES256');
  const { state, authenticate } = await keySet(t, [key]);
  state.hangs = true;
  const startedMs = performance.now();
  await assert.rejects(authenticate(await bearer(key)), { code: 'unavailable' });
  assert.ok(performance.now() - startedMs < 4_500);
});
