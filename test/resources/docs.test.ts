import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertProblem, createDoc, patchDoc, putDoc, tagOf } from '../helpers/docs.ts';
import { startServer } from '../helpers/server.ts';
import { testSql } from '../helpers/sql.ts';

test('a document that is posted gets an id, a Location and the tag of its first version', async (t) => {
  const server = await startServer(t);
  const posted = await server.call('POST /v1/docs', { key: 'd-1', body: { title: 'Plan', body: 'text' } });
  assert.equal(posted.status, 201);
  const { id, etag, created_at } = posted.json;
  assert.match(id, /^doc_[0-9a-f]{32}$/);
  assert.equal(posted.headers.get('location'), `/v1/docs/${id}`);
  assert.equal(tagOf(posted), etag);
  assert.match(etag, new RegExp(`^W/"${id}-v1\\.[A-Za-z0-9_-]{10}"$`));
  assert.deepEqual(posted.json, {
    id,
    title: 'Plan',
    body: 'text',
    version: 1,
    etag,
    created_at,
    updated_at: created_at,
    updated_by: 'alice',
  });
  const read = await server.call(`GET /v1/docs/${id}`);
  assert.deepEqual(read.json, posted.json);
  assert.equal(tagOf(read), etag);

  const again = await server.call('POST /v1/docs', { key: 'd-1', body: { body: 'text', title: 'Plan' } });
  assert.deepEqual([again.status, again.text], [201, posted.text]);
  assert.equal(tagOf(again), etag);
  assertProblem(
    await server.call('POST /v1/docs', { body: { title: 'x', body: '' } }),
    400,
    'idempotency_key_required',
  );
  const list = await server.call('GET /v1/docs');
  assert.equal(list.json.items.length, 1);
});

test('PUT with If-None-Match: * creates once; the second is told what is there', async (t) => {
  const server = await startServer(t);
  const body = { title: 'Mine', body: '' };
  const created = await server.call('PUT /v1/docs/my-doc_1', { headers: { 'if-none-match': '*' }, body });
  assert.equal(created.status, 201);
  assert.deepEqual([created.json.id, created.json.version], ['my-doc_1', 1]);
  const second = await server.call('PUT /v1/docs/my-doc_1', { sub: 'bob', headers: { 'if-none-match': '*' }, body });
  assertProblem(second, 412, 'precondition_failed');
  assert.equal(tagOf(second), created.json.etag);
  const { current_etag, current_version, changed_at, changed_by } = second.json;
  assert.deepEqual(
    [current_etag, current_version, changed_at, changed_by],
    [created.json.etag, 1, created.json.updated_at, 'alice'],
  );
  assert.equal('current' in second.json, false);
});

test('of many creations of one document at once one is 201 and all others 412 with its tag', async (t) => {
  const server = await startServer(t);
  const all = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      server.call('PUT /v1/docs/new', { headers: { 'if-none-match': '*' }, body: { title: `t${i}`, body: '' } }),
    ),
  );
  const winners = all.filter((answer) => answer.status === 201);
  assert.equal(winners.length, 1);
  for (const loser of all.filter((answer) => answer.status !== 201)) {
    assertProblem(loser, 412, 'precondition_failed');
    assert.equal(tagOf(loser), winners[0]?.json.etag);
  }
});

test('a replaced document says who changed it and when, and keeps when it was created', async (t) => {
  const server = await startServer(t);
  const tag = await createDoc(server, 'd');
  const before = await server.call('GET /v1/docs/d');
  const put = await putDoc(server, 'd', tag, { sub: 'bob', body: { title: 'B', body: 'b' } });
  assert.equal(put.status, 200);
  assert.deepEqual(
    [put.json.title, put.json.body, put.json.version, put.json.updated_by, put.json.created_at],
    ['B', 'b', 2, 'bob', before.json.created_at],
  );
  assert.ok(put.json.updated_at > before.json.updated_at);
  assert.deepEqual((await server.call('GET /v1/docs/d')).json, put.json);
});

test('a version is later than the one before it, also when its transaction began earlier or in the same millisecond', async (t) => {
  const server = await startServer(t);
  const tag = await createDoc(server, 'd');
  await testSql(t, server.databaseUrl)`update docs set updated_at = '2100-01-01T00:00:00.999Z'`;
  const put = await putDoc(server, 'd', tag);
  assert.equal(Date.parse(put.json.updated_at), Date.UTC(2100, 0, 1, 0, 0, 1));
  const patched = await patchDoc(server, 'd', tagOf(put), { title: 'later' });
  assert.equal(Date.parse(patched.json.updated_at), Date.UTC(2100, 0, 1, 0, 0, 1, 1));
});

test('a 412 shows the current document to those who prefer it, and only to them', async (t) => {
  const server = await startServer(t);
  const tag = await createDoc(server, 'd');
  const current = (await putDoc(server, 'd', tag, { sub: 'bob', body: { title: 'B', body: 'bob was here' } })).json;
  const prefer = { prefer: 'return=representation' };
  const stale = { body: { title: 'A', body: 'alice' }, headers: prefer };
  const answers = [
    await putDoc(server, 'd', tag, stale),
    await patchDoc(server, 'd', tag, { title: 'A' }, { headers: prefer }),
    await server.call('DELETE /v1/docs/d', { headers: { 'if-match': tag, ...prefer } }),
    await server.call('PUT /v1/docs/d', { ...stale, headers: { 'if-none-match': '*', ...prefer } }),
    await putDoc(server, 'd', tag, { body: { title: 1 }, headers: prefer }),
  ];
  for (const answer of answers) {
    assertProblem(answer, 412, 'precondition_failed');
    assert.deepEqual(answer.json.current, current);
    assert.equal(answer.json.current_etag, current.etag);
  }
  assert.equal('current' in (await patchDoc(server, 'd', tag, { title: 'A' })).json, false);
});

test('a merge patch changes what it names and nothing else', async (t) => {
  const server = await startServer(t);
  const tag = await createDoc(server, 'd', { body: { title: 'Old', body: 'kept' } });
  const titled = await patchDoc(server, 'd', tag, { title: 'New' });
  assert.deepEqual([titled.status, titled.json.title, titled.json.body, titled.json.version], [200, 'New', 'kept', 2]);
  const emptied = await patchDoc(server, 'd', tagOf(titled), { body: '' });
  assert.deepEqual([emptied.json.title, emptied.json.body, emptied.json.version], ['New', '', 3]);
  assert.deepEqual((await server.call('GET /v1/docs/d')).json, emptied.json);
});

test('a patch that changes nothing is 200 with the current tag and leaves version, time and author alone', async (t) => {
  const server = await startServer(t);
  const tag = await createDoc(server, 'd', { body: { title: 'T', body: 'B' } });
  const before = (await server.call('GET /v1/docs/d')).json;
  for (const patch of [{}, { title: 'T' }, { body: 'B' }, { title: 'T', body: 'B' }]) {
    for (const condition of [tag, '*']) {
      const same = await patchDoc(server, 'd', condition, patch, { sub: 'bob' });
      assert.equal(same.status, 200);
      assert.deepEqual(same.json, before);
      assert.equal(tagOf(same), tag);
    }
  }
  const stale = tag.replace('-v1.', '-v7.');
  assertProblem(await patchDoc(server, 'd', stale, {}), 412, 'precondition_failed');
});

test('a patch that is relative, removes a member or is no object is refused, with a hint where one helps', async (t) => {
  const server = await startServer(t);
  const tag = await createDoc(server, 'd');
  const refused = async (patch: unknown) => {
    const answer = await patchDoc(server, 'd', tag, patch);
    assertProblem(answer, 422, 'invalid_body');
    return answer.json.message as string;
  };
  assert.match(await refused({ views: '+1' }), /relative/);
  assert.match(await refused({ $inc: { views: 1 } }), /operator/);
  assert.match(await refused([{ op: 'replace', path: '/title', value: 'x' }]), /JSON Patch/);
  for (const patch of [
    { title: null },
    { body: null },
    { title: '' },
    [],
    '"text"',
    1,
    null,
    '{"__proto__":{"title":"x"}}',
  ]) {
    await refused(patch);
  }
  const patched = await patchDoc(server, 'd', tag, { title: '+1' });
  assert.deepEqual([patched.status, patched.json.title], [200, '+1']);

  const operations = await patchDoc(server, 'd', tag, [{ op: 'test' }], {
    headers: { 'content-type': 'application/json-patch+json' },
  });
  assertProblem(operations, 415, 'unsupported_media_type');
  assert.equal(operations.headers.get('accept-patch'), 'application/merge-patch+json');
  assert.match(operations.json.message, /not operations/);
  assertProblem(
    await patchDoc(server, 'd', tag, {}, { headers: { 'content-type': 'application/json' } }),
    415,
    'unsupported_media_type',
  );
});

test('DELETE is 204 once and 404 from then on, for any If-Match', async (t) => {
  const server = await startServer(t);
  const tag = await createDoc(server, 'd');
  const remove = (condition: string) => server.call('DELETE /v1/docs/d', { headers: { 'if-match': condition } });
  const deleted = await remove(tag);
  assert.deepEqual([deleted.status, deleted.text, deleted.headers.get('content-type')], [204, '', null]);
  for (const condition of [tag, '*', '"x"']) {
    assertProblem(await remove(condition), 404, 'not_found');
    assertProblem(await putDoc(server, 'd', condition), 404, 'not_found');
    assertProblem(await patchDoc(server, 'd', condition, {}), 404, 'not_found');
  }
  assertProblem(await server.call('GET /v1/docs/d'), 404, 'not_found');
  assert.deepEqual((await server.call('GET /v1/docs')).json.items, []);
});

test('a key on PUT, PATCH and DELETE replays the first answer where the condition would fail now', async (t) => {
  const server = await startServer(t);
  const tag = await createDoc(server, 'd');
  const put = () => putDoc(server, 'd', tag, { key: 'put-1', body: { title: 'A', body: 'a' } });
  const first = await put();
  const patch = () => patchDoc(server, 'd', tagOf(first), { title: 'P' }, { key: 'patch-1' });
  const patched = await patch();
  const remove = () => server.call('DELETE /v1/docs/d', { key: 'del-1', headers: { 'if-match': tagOf(patched) } });
  const removed = await remove();
  assert.deepEqual([first.status, patched.status, removed.status], [200, 200, 204]);
  for (const [send, answer] of [
    [put, first],
    [patch, patched],
    [remove, removed],
  ] as const) {
    const again = await send();
    assert.deepEqual(
      [again.status, again.text, again.headers.get('etag')],
      [answer.status, answer.text, answer.headers.get('etag')],
    );
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
  }
  const otherTag = await putDoc(server, 'd', '*', { key: 'put-1', body: { title: 'A', body: 'a' } });
  assertProblem(otherTag, 409, 'idempotency_key_reused');
  assert.deepEqual(otherTag.json.differs, ['if_match']);
});

test('a key whose write was refused by its condition is free, and runs once the condition holds', async (t) => {
  const server = await startServer(t);
  const tag = await createDoc(server, 'd');
  const second = tagOf(await putDoc(server, 'd', tag, { sub: 'bob' }));
  const body = { title: 'mine', body: 'x' };
  assertProblem(await putDoc(server, 'd', tag, { key: 'k', body }), 412, 'precondition_failed');
  const next = await putDoc(server, 'd', second, { key: 'k', body });
  assert.deepEqual([next.status, next.json.version, next.headers.get('idempotent-replayed')], [200, 3, 'false']);
});

test('what can not be the id of a document is not found, whatever is asked of it', async (t) => {
  const server = await startServer(t);
  for (const id of ['a'.repeat(65), 'a.b', 'a%20b', '%C3%A9', 'a%2Fb', '%2e%2e', 'a:b']) {
    assertProblem(await server.call(`GET /v1/docs/${id}`), 404, 'not_found');
    assertProblem(await putDoc(server, id, '*'), 404, 'not_found');
    assertProblem(await putDoc(server, id, '*', { body: {} }), 404, 'not_found');
    const create = { headers: { 'if-none-match': '*' }, body: { title: 'x', body: 'x' } };
    assertProblem(await server.call(`PUT /v1/docs/${id}`, create), 404, 'not_found');
  }
  await createDoc(server, 'A-z_09'.padEnd(64, 'x'));
});

test('text counts code points; U+0000, lone surrogates, unknown members and other types are 422 and write nothing', async (t) => {
  const server = await startServer(t);
  const create = (id: string, body: unknown) =>
    server.call(`PUT /v1/docs/${id}`, { headers: { 'if-none-match': '*' }, body });
  const bad: unknown[] = [
    {},
    [],
    { title: '', body: '' },
    { title: '🦀'.repeat(201), body: '' },
    { title: 'x' },
    { title: 'x', body: null },
    { title: 1, body: '' },
    { title: 'x', body: '\u0000' },
    { title: 'x', body: '', extra: 1 },
    { title: 'x', body: 'a'.repeat(1_000_001) },
  ];
  for (const body of bad) assertProblem(await create('bad', body), 422, 'invalid_body');
  assertProblem(await create('bad', '{"title":"\\ud800","body":""}'), 422, 'invalid_body');
  assertProblem(await server.call('GET /v1/docs/bad'), 404, 'not_found');
  const good = await create('good', { title: '🦀'.repeat(200), body: 'é\u2028\uffff' });
  assert.deepEqual([good.status, good.json.body], [201, 'é\u2028\uffff']);
  assert.equal((await create('long', { title: 'x', body: 'a'.repeat(1_000_000) })).status, 201);
});
