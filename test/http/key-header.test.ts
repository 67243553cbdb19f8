import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectRaw, exchange, rawRequest } from '../helpers/raw-socket.ts';
import { startServer } from '../helpers/server.ts';
import { countOrders, testSql } from '../helpers/sql.ts';

const body = '{"cents":1,"item":"x"}';
const order = (...lines: string[]) => ({ line: 'POST /v1/orders', lines, body });
const longest = 'k'.repeat(255);

const refused: readonly [what: string, lines: string[]][] = [
  ['empty', ['Idempotency-Key:']],
  ['blanks', ['Idempotency-Key:  \t ']],
  ['empty quotes', ['Idempotency-Key: ""']],
  ['two lines', ['Idempotency-Key: a', 'Idempotency-Key: b']],
  ['two lines that agree, in other letters', ['Idempotency-Key: a', 'IDEMPOTENCY-KEY: a']],
  ['two lines around another header', ['Idempotency-Key: a', 'X-Between: 1', 'Idempotency-Key: a']],
  ['256 characters', [`Idempotency-Key: ${longest}k`]],
  ['256 characters in quotes', [`Idempotency-Key: "${longest}k"`]],
  ['a blank inside', ['Idempotency-Key: a b']],
  ['a tab inside', ['Idempotency-Key: a\tb']],
  ['joined by a proxy', ['Idempotency-Key: a, b']],
  ['UTF-8', ['Idempotency-Key: caf\u00c3\u00a9']],
  ['Latin-1', ['Idempotency-Key: caf\u00e9']],
  ['a byte 0x80', ['Idempotency-Key: a\u0080']],
  ['a quote inside', ['Idempotency-Key: a"b']],
  ['an open quote', ['Idempotency-Key: "a']],
  ['something behind the quotes', ['Idempotency-Key: "a";p=1']],
  ['an escape in quotes', ['Idempotency-Key: "a\\"b"']],
];

test('a malformed Idempotency-Key on the wire is 400 with the key still to be sent right, and the connection stays', async (t) => {
  const server = await startServer(t);
  const sql = testSql(t, server.databaseUrl);
  const connection = await connectRaw(t, server.url);
  for (const [what, lines] of refused) {
    connection.send(await rawRequest(order(...lines)));
    const answer = await connection.answer();
    assert.deepEqual([answer.status, answer.json.code], [400, 'idempotency_key_invalid'], what);
    assert.equal(answer.json.key_action, 'reuse');
    assert.equal(answer.headers['retry-after'], undefined);
  }
  connection.send(await rawRequest(order()));
  const missing = await connection.answer();
  assert.deepEqual([missing.status, missing.json.code], [400, 'idempotency_key_required']);
  assert.equal(await countOrders(sql), 0);
  connection.send(await rawRequest(order('Idempotency-Key: k')));
  assert.equal((await connection.answer()).status, 201);
});

test('control bytes in a header are refused by the parser, and the next connection is served', async (t) => {
  const server = await startServer(t);
  for (const byte of ['\u0000', '\u0001', '\u007f', '\r', '\n']) {
    const answer = await exchange(t, server.url, order(`Idempotency-Key: a${byte}b`));
    assert.equal(answer.status, 400, JSON.stringify(byte));
    assert.match(answer.headers['content-type'] ?? '', /problem\+json/);
    assert.ok(['bad_request', 'idempotency_key_invalid'].includes(answer.json.code), answer.text);
  }
  assert.equal((await server.call('GET /v1/orders')).status, 200);
});

test('a second Idempotency-Key behind two thousand other headers is seen', async (t) => {
  const server = await startServer(t);
  // Short ones, so that the size of the head is not what refuses them.
  const filler = Array.from({ length: 2_100 }, () => 'a:');
  const twice = await exchange(t, server.url, order('Idempotency-Key: a', ...filler, 'Idempotency-Key: b'));
  assert.deepEqual([twice.status, twice.json.code], [400, 'idempotency_key_invalid']);
  const once = await exchange(t, server.url, order(...filler, 'Idempotency-Key: a'));
  assert.equal(once.status, 201, once.text);
});

test('the bare and the quoted form, blanks around either and any visible character but the quote make the same key', async (t) => {
  const server = await startServer(t);
  const sql = testSql(t, server.databaseUrl);
  const visible = Array.from({ length: 94 }, (_, i) => String.fromCharCode(0x21 + i)).filter((c) => c !== '"');
  const bare = visible.join('');
  const keys = ['k-1', longest, bare.replace('\\', ''), 'stainless-node-retry-0f8fad5b-d9cb-469f-a165-70867728950e'];
  for (const key of keys) {
    const texts = new Set<string>();
    for (const value of [key, `"${key}"`, ` \t${key}\t `, `  "${key}"  `]) {
      const answer = await exchange(t, server.url, order(`Idempotency-Key: ${value}`));
      assert.equal(answer.status, 201, `${value}: ${answer.text}`);
      texts.add(answer.text);
    }
    assert.equal(texts.size, 1, key);
  }
  for (const key of [bare, 'K-1', 'k-1.']) {
    const answer = await exchange(t, server.url, order(`Idempotency-Key: ${key}`));
    assert.equal(answer.headers['idempotent-replayed'], 'false', 'another key');
  }
  assert.equal(await countOrders(sql), keys.length + 3);
});

test('on a GET the key is ignored, malformed or not', async (t) => {
  const server = await startServer(t);
  for (const lines of [
    ['Idempotency-Key:'],
    ['Idempotency-Key: a', 'Idempotency-Key: b'],
    [`Idempotency-Key: ${longest}k`],
  ]) {
    const answer = await exchange(t, server.url, { line: 'GET /v1/orders', lines });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers['idempotent-replayed'], undefined);
  }
});
