import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { assertProblem, createDoc, patchDoc, putDoc, tagOf } from '../helpers/docs.ts';
import { connectRaw, rawRequest } from '../helpers/raw-http.ts';
import { startServer, type TestServer, testToken } from '../helpers/server.ts';

const json = 'Content-Type: application/json';
const content = JSON.stringify({ title: 'next', body: 'two' });

/** Sends one request with the header lines as they are. */
async function sendRaw(t: TestContext, server: TestServer, line: string, lines: readonly string[], body?: string) {
  const connection = await connectRaw(t, server.url);
  const auth = `Authorization: Bearer ${await testToken()}`;
  connection.send(rawRequest(line, [auth, 'Connection: close', ...lines], body));
  return await connection.answer();
}

test('24: a tag is found in a list, over two lines, with tabs, blanks and empty members', async (t) => {
  const server = await startServer(t);
  let tag = await createDoc(server, 'd');
  const strong = () => tag.slice(2);
  const spellings: ((name: string) => string[])[] = [
    (name) => [`${name}: "x", ${tag}`],
    (name) => [`${name}: "x"`, `${name}: ${tag}`],
    (name) => [`${name.toLowerCase()}: ${tag}`, `${name}: "a,b"`],
    (name) => [`${name}: "x"\t,\t${tag}\t,\t"y"`],
    (name) => [`${name}: ,, ,${strong()} , ,`],
    (name) => [`${name}:\t "a,b",${strong()}`],
  ];
  for (const spell of spellings) {
    assert.equal((await sendRaw(t, server, 'GET /v1/docs/d', spell('If-None-Match'))).status, 304);
    assert.equal((await sendRaw(t, server, 'GET /v1/docs/d', spell('If-Match'))).status, 200);
    const put = await sendRaw(t, server, 'PUT /v1/docs/d', [json, ...spell('If-Match')], content);
    assert.equal(put.status, 200, put.body);
    tag = put.values('etag')[0] as string;
  }
});

test('24: a comma inside the quotes is part of the tag, and a piece of a tag never matches', async (t) => {
  const server = await startServer(t);
  const tag = await createDoc(server, 'd');
  const opaque = tag.slice(3, -1);
  const [head, tail] = [opaque.slice(0, 4), opaque.slice(4)];
  for (const pieces of [
    `"a,${opaque}"`,
    `"${opaque},a"`,
    `"${head}", "${tail}"`,
    `"x${opaque}"`,
    `"${opaque} x"`.replace(' ', '~'),
  ]) {
    assert.equal((await server.call('GET /v1/docs/d', { headers: { 'if-none-match': pieces } })).status, 200, pieces);
    assertProblem(await putDoc(server, 'd', pieces), 412, 'precondition_failed');
  }
});

test('25: a malformed tag list never skips a body and never lets a write through, however long it is', async (t) => {
  const server = await startServer(t);
  const tag = await createDoc(server, 'd');
  const opaque = tag.slice(3, -1);
  const malformed = [
    `w/"${opaque}"`,
    `W/${opaque}`,
    opaque,
    `"${opaque}`,
    `${opaque}"`,
    `W/ "${opaque}"`,
    `*, ${tag}`,
    `${tag}, *`,
    `${tag} ${tag}`,
    `${tag};`,
    '* *',
    ','.repeat(15_000),
    `${'"x",'.repeat(3_700)}"`,
  ];
  for (const value of malformed) {
    const shown = value.slice(0, 40);
    const read = await sendRaw(t, server, 'GET /v1/docs/d', [`If-None-Match: ${value}`]);
    assert.equal(read.status, 200, shown);
    for (const [line, lines, body] of [
      ['PUT /v1/docs/d', [json], content],
      ['PATCH /v1/docs/d', ['Content-Type: application/merge-patch+json'], '{"title":"x"}'],
      ['DELETE /v1/docs/d', [], undefined],
    ] as const) {
      const refused = await sendRaw(t, server, line, [...lines, `If-Match: ${value}`], body);
      assert.deepEqual(
        [refused.status, JSON.parse(refused.body).code],
        [400, 'precondition_invalid'],
        `${line} ${shown}`,
      );
    }
    const creation = await sendRaw(t, server, 'PUT /v1/docs/new', [json, `If-None-Match: ${value}`], content);
    assert.equal(creation.status, 400, shown);
  }
  assert.equal(tagOf(await server.call('GET /v1/docs/d')), tag);
});

test('26: an empty If-Match is 400, not absent; "" and "*" in quotes are tags that name nothing', async (t) => {
  const server = await startServer(t);
  const tag = await createDoc(server, 'd');
  for (const [value, status, code] of [
    ['', 400, 'precondition_invalid'],
    ['   ', 400, 'precondition_invalid'],
    ['""', 412, 'precondition_failed'],
    ['W/""', 412, 'precondition_failed'],
    ['"*"', 412, 'precondition_failed'],
    [tag.replace('-v1.', '-v01.'), 412, 'precondition_failed'],
    [tag.replace('d-v1', 'D-v1'), 412, 'precondition_failed'],
    [tag.replace('-v1.', '-V1.'), 412, 'precondition_failed'],
    [tag.replace('-v1.', '-v1'), 412, 'precondition_failed'],
    [tag.replace('-v1.', '-v+1.'), 412, 'precondition_failed'],
    [tag.replace('-v1.', '-v99999999999.'), 412, 'precondition_failed'],
    [tag.replace('-v1.', '-v2147483648.'), 412, 'precondition_failed'],
    [tag.replace('-v1.', '-v1e0.'), 412, 'precondition_failed'],
    ['"\u00e9"', 412, 'precondition_failed'],
  ] as const) {
    const refused = await sendRaw(t, server, 'PUT /v1/docs/d', [json, `If-Match: ${value}`], content);
    assert.deepEqual([refused.status, JSON.parse(refused.body).code], [status, code], value);
    if (status === 412) assert.deepEqual(refused.values('etag'), [tag]);
    const read = await sendRaw(t, server, 'GET /v1/docs/d', [`If-None-Match: ${value}`]);
    assert.equal(read.status, 200, value);
  }
  assert.equal(tagOf(await server.call('GET /v1/docs/d')), tag);
});

test('28: PUT, PATCH and DELETE all check, and a stale tag is told before an invalid body, no tag before both', async (t) => {
  const server = await startServer(t);
  const stale = await createDoc(server, 'd');
  const current = tagOf(await putDoc(server, 'd', stale));
  for (const invalid of [{ title: '' }, {}, [], { views: '+1' }]) {
    assertProblem(await putDoc(server, 'd', stale, { body: invalid }), 412, 'precondition_failed');
    assertProblem(await putDoc(server, 'd', current, { body: invalid }), 422, 'invalid_body');
    assertProblem(await putDoc(server, 'gone', current, { body: invalid }), 404, 'not_found');
    assertProblem(await server.call('PUT /v1/docs/d', { body: invalid }), 428, 'precondition_required');
    const create = { headers: { 'if-none-match': '*' }, body: invalid };
    assertProblem(await server.call('PUT /v1/docs/d', create), 412, 'precondition_failed');
    assertProblem(await server.call('PUT /v1/docs/new', create), 422, 'invalid_body');
  }
  assertProblem(await patchDoc(server, 'd', stale, { title: null }), 412, 'precondition_failed');
  assertProblem(await patchDoc(server, 'd', current, { title: null }), 422, 'invalid_body');
  assertProblem(await patchDoc(server, 'd', stale, { title: 'x' }), 412, 'precondition_failed');
  const merge = { headers: { 'content-type': 'application/merge-patch+json' } };
  assertProblem(
    await server.call('PATCH /v1/docs/d', { ...merge, body: { title: null } }),
    428,
    'precondition_required',
  );
  assertProblem(
    await server.call('PATCH /v1/docs/d', { ...merge, body: { title: 'x' } }),
    428,
    'precondition_required',
  );
  assertProblem(await server.call('DELETE /v1/docs/d'), 428, 'precondition_required');
  const none = { headers: { 'if-none-match': '"x"' } };
  assertProblem(
    await server.call('PUT /v1/docs/d', { ...none, body: JSON.parse(content) }),
    428,
    'precondition_required',
  );
  assertProblem(await server.call('DELETE /v1/docs/d', { headers: { 'if-match': stale } }), 412, 'precondition_failed');
  assert.equal(tagOf(await server.call('GET /v1/docs/d')), current);
});

test('31: a document that was deleted and created again goes on counting, and no tag of its first life writes to it', async (t) => {
  const server = await startServer(t);
  const same = { body: { title: 'same', body: 'same' } };
  const first = await createDoc(server, 'd', same);
  const second = tagOf(await putDoc(server, 'd', first, same));
  assert.equal((await server.call('DELETE /v1/docs/d', { headers: { 'if-match': second } })).status, 204);
  const reborn = await createDoc(server, 'd', same);
  const read = await server.call('GET /v1/docs/d', { headers: { 'if-none-match': `${first}, ${second}` } });
  assert.deepEqual([read.status, read.json.version], [200, 3]);
  assert.equal(read.json.created_at, read.json.updated_at);
  for (const old of [first, second]) {
    // The same content by the same author: still not the answer to a write of the first life.
    assertProblem(await putDoc(server, 'd', old, same), 412, 'precondition_failed');
    assertProblem(await patchDoc(server, 'd', old, {}), 412, 'precondition_failed');
    assertProblem(await server.call('DELETE /v1/docs/d', { headers: { 'if-match': old } }), 412, 'precondition_failed');
  }
  assert.equal((await putDoc(server, 'd', reborn)).status, 200);
});

test('32: the tag of every answer works at once: POST, PUT, GET, 412, 304, PATCH, PUT', async (t) => {
  const server = await startServer(t);
  const posted = await server.call('POST /v1/docs', { key: 'k', body: { title: 'a', body: 'a' } });
  const { id } = posted.json;
  let last = posted;
  const steps: (() => ReturnType<typeof putDoc>)[] = [
    () => putDoc(server, id, tagOf(last), { body: { title: 'b', body: 'b' } }),
    () => putDoc(server, id, tagOf(last), { body: { title: 'c', body: 'c' } }),
    () => server.call(`GET /v1/docs/${id}`),
    () => putDoc(server, id, tagOf(last), { body: { title: 'd', body: 'd' } }),
    () => server.call(`HEAD /v1/docs/${id}`),
    () => patchDoc(server, id, tagOf(last), { title: 'e' }),
    () => putDoc(server, id, tagOf(posted), { body: { title: 'f', body: 'f' } }),
    () => patchDoc(server, id, tagOf(last), { title: 'g' }),
    () => server.call(`GET /v1/docs/${id}`, { headers: { 'if-none-match': tagOf(last) } }),
    () => patchDoc(server, id, tagOf(last), { title: 'h' }),
  ];
  const statuses: number[] = [];
  for (const step of steps) {
    last = await step();
    statuses.push(last.status);
  }
  assert.deepEqual(statuses, [200, 200, 200, 200, 200, 200, 412, 200, 304, 200]);
  assert.equal(last.json.version, 7);
});

test('33: a stranger learns nothing from a condition: 401 and 404 come before 304 and 412', async (t) => {
  const server = await startServer(t);
  const tag = await createDoc(server, 'd', { tenant: 'globex' });
  for (const condition of ['*', tag, '"x"']) {
    for (const header of ['if-none-match', 'if-match']) {
      const headers = { [header]: condition };
      for (const path of ['/v1/docs/d', '/v1/docs/nowhere', '/v1/docs', '/v1/orders']) {
        assertProblem(await server.call(`GET ${path}`, { token: null, headers }), 401, 'unauthenticated');
      }
      assertProblem(await server.call('PUT /v1/docs/d', { token: 'x', headers, body: {} }), 401, 'unauthenticated');
      assertProblem(await server.call('GET /v1/docs/d', { headers }), 404, 'not_found');
      assert.equal((await server.call('HEAD /v1/docs/d', { headers })).status, 404);
    }
    assertProblem(await putDoc(server, 'd', condition), 404, 'not_found');
    assertProblem(await patchDoc(server, 'd', condition, {}), 404, 'not_found');
    assertProblem(await server.call('DELETE /v1/docs/d', { headers: { 'if-match': condition } }), 404, 'not_found');
  }
  assert.equal(tagOf(await server.call('GET /v1/docs/d', { tenant: 'globex' })), tag);
});

test('34: a tag that a compressing gateway has weakened or strengthened still names its version', async (t) => {
  const server = await startServer(t);
  let tag = await createDoc(server, 'd');
  for (const rewrite of [(weak: string) => weak.slice(2), (weak: string) => weak]) {
    assert.equal((await server.call('GET /v1/docs/d', { headers: { 'if-none-match': rewrite(tag) } })).status, 304);
    const put = await putDoc(server, 'd', rewrite(tag), { body: { title: rewrite(tag), body: '' } });
    assert.equal(put.status, 200);
    tag = tagOf(put);
  }
});

test('34a: two tenants with one document id, version and content never share a tag', async (t) => {
  const server = await startServer(t);
  const [acme, globex] = [{ tenant: 'acme' }, { tenant: 'globex' }];
  const [ours, theirs] = [await createDoc(server, 'd', acme), await createDoc(server, 'd', globex)];
  assert.notEqual(ours, theirs);
  const read = await server.call('GET /v1/docs/d', { ...globex, headers: { 'if-none-match': ours } });
  assert.deepEqual([read.status, tagOf(read)], [200, theirs]);
  assertProblem(
    await server.call('GET /v1/docs/d', { ...globex, headers: { 'if-match': ours } }),
    412,
    'precondition_failed',
  );
  assertProblem(await putDoc(server, 'd', ours, globex), 412, 'precondition_failed');
  assertProblem(
    await server.call('DELETE /v1/docs/d', { ...globex, headers: { 'if-match': ours } }),
    412,
    'precondition_failed',
  );
  for (const list of ['/v1/docs', '/v1/orders', '/v1/docs?limit=1']) {
    const [mine, others] = [await server.call(`GET ${list}`, acme), await server.call(`GET ${list}`, globex)];
    assert.notEqual(tagOf(mine), tagOf(others));
    const cross = await server.call(`GET ${list}`, { ...globex, headers: { 'if-none-match': tagOf(mine) } });
    assert.equal(cross.status, 200);
  }
});

test('34b: a PUT that was done and is sent again is 200 with the current document, not 412', async (t) => {
  const server = await startServer(t);
  const tag = await createDoc(server, 'd');
  const sent = { body: { title: 'mine', body: 'all of it' } };
  const first = await putDoc(server, 'd', tag, sent);
  for (const again of [
    sent,
    { ...sent, key: 'fresh-key' },
    { ...sent, headers: { prefer: 'return=representation' } },
  ]) {
    const repeated = await putDoc(server, 'd', tag, again);
    assert.deepEqual([repeated.status, repeated.json], [200, first.json]);
    assert.equal(tagOf(repeated), tagOf(first));
  }
  const listed = await putDoc(server, 'd', `"x", ${tag.slice(2)}`, sent);
  assert.deepEqual([listed.status, listed.json.version], [200, 2]);
  assert.equal((await server.call('GET /v1/docs/d')).json.version, 2);
});

test('34b: other content, another principal, a tag two versions back or one that must not match: 412', async (t) => {
  const server = await startServer(t);
  const first = await createDoc(server, 'd');
  const sent = { body: { title: 'mine', body: 'all of it' } };
  const second = tagOf(await putDoc(server, 'd', first, sent));
  const refused = async (tag: string, options: Parameters<typeof putDoc>[3]) =>
    assertProblem(await putDoc(server, 'd', tag, options), 412, 'precondition_failed');
  await refused(first, { body: { title: 'mine', body: 'all of It' } });
  await refused(first, { body: { title: 'Mine', body: 'all of it' } });
  await refused(first, { ...sent, sub: 'bob' });
  await refused(first, { ...sent, headers: { 'if-none-match': second } });
  await refused('"x"', sent);
  await refused(first.replace('-v1.', '-v3.'), sent);
  const third = tagOf(await putDoc(server, 'd', second, sent));
  await refused(first, sent);
  assert.equal(tagOf(await putDoc(server, 'd', second, sent)), third);
});

test('34b: with If-None-Match beside If-Match both must hold', async (t) => {
  const server = await startServer(t);
  const first = await createDoc(server, 'd');
  const both = (ifMatch: string, ifNoneMatch: string) =>
    putDoc(server, 'd', ifMatch, { sub: 'bob', headers: { 'if-none-match': ifNoneMatch } });
  assertProblem(await both(first, first), 412, 'precondition_failed');
  assertProblem(await both('*', first), 412, 'precondition_failed');
  assertProblem(await both(first, '*'), 412, 'precondition_failed');
  assertProblem(await both('*', '*'), 412, 'precondition_failed');
  const second = await both(first, '"x"');
  assert.deepEqual([second.status, second.json.version], [200, 2]);
  assert.equal((await both('*', `"x", ${first}`)).status, 200);
  const missing = await server.call('PUT /v1/docs/no', {
    headers: { 'if-match': '*', 'if-none-match': '*' },
    body: JSON.parse(content),
  });
  assertProblem(missing, 404, 'not_found');
});
