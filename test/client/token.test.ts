import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ClientOptions, RefusedError } from '../../src/client/index.ts';
import { orderAnswer, problemAnswer, scriptedClient } from './scripted.ts';

const order = { body: { cents: 5, item: 'tea' } };
const unauthenticated = problemAnswer(401, 'unauthenticated');

/** An unsigned token: the client reads its tenant and verifies nothing. */
function token(tenant: string, serial: number): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'none' })}.${part({ tenant, serial })}.x`;
}

/** A source that gives these tokens one after another, and what it was asked. */
function source(...tokens: string[]) {
  const asked: (string | undefined)[] = [];
  const give: ClientOptions['token'] = ({ rejected }) => {
    asked.push(rejected);
    return tokens[Math.min(asked.length, tokens.length) - 1] as string;
  };
  return { asked, give };
}

test('after a 401 the token is asked for anew, once, and the same key goes on', async () => {
  const [old, fresh] = [token('acme', 1), token('acme', 2)];
  const { asked, give } = source(old, fresh);
  const { client, play, sent, slept } = scriptedClient({ token: give });
  play(unauthenticated, orderAnswer());
  const answer = await client.call('createOrder', order);
  assert.equal(answer.attempts, 2);
  assert.deepEqual(asked, [undefined, old]);
  assert.deepEqual(slept, []);
  assert.equal(sent[1]?.headers.authorization, `Bearer ${fresh}`);
  assert.equal(sent[1]?.headers['idempotency-key'], sent[0]?.headers['idempotency-key']);
});

test('a second 401 ends the call', async () => {
  const { asked, give } = source(token('acme', 1), token('acme', 2), token('acme', 3));
  const { client, play, sent } = scriptedClient({ token: give });
  play(unauthenticated, unauthenticated);
  await assert.rejects(client.call('createOrder', order), { code: 'unauthenticated', attempts: 2 });
  assert.equal(sent.length, 2);
  assert.equal(asked.length, 2);
});

test('a token that stays the same after a 401 is not sent again', async () => {
  const { client, play, sent } = scriptedClient({ token: () => 'always-this' });
  play(unauthenticated);
  await assert.rejects(client.call('createOrder', order), { code: 'unauthenticated' });
  assert.equal(sent.length, 1);
});

test('a 401 of a token that is a string ends the call', async () => {
  const { client, play, sent } = scriptedClient();
  play(unauthenticated);
  await assert.rejects(client.call('createOrder', order), { code: 'unauthenticated' });
  assert.equal(sent.length, 1);
});

test('a write is not sent again under another tenant’s token', async () => {
  const { give } = source(token('acme', 1), token('globex', 1));
  const { client, play, sent } = scriptedClient({ token: give });
  play('broken', unauthenticated);
  const error = await client.call('createOrder', order).catch((thrown) => thrown);
  assert.ok(error instanceof RefusedError, String(error));
  assert.equal(error.code, 'tenant_changed');
  assert.equal(sent.length, 2);
});

test('a call goes on with the token it began with while the source already gives another', async () => {
  const { asked, give } = source(token('acme', 1), token('globex', 1));
  const { client, play, sent } = scriptedClient({ token: give });
  play('broken', 'broken', orderAnswer());
  await client.call('createOrder', order);
  assert.equal(asked.length, 1);
  assert.equal(new Set(sent.map(({ headers }) => headers.authorization)).size, 1);
});

test('what the token’s source throws reaches the caller as it is', async () => {
  const fault = new Error('signed out');
  const { client } = scriptedClient({
    token: () => {
      throw fault;
    },
  });
  await assert.rejects(client.call('createOrder', order), fault);
});
