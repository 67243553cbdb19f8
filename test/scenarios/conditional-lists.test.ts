import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import postgres from 'postgres';
import { atEnd } from '../helpers/cleanup.ts';
import { assertProblem, createDoc, patchDoc, tagOf } from '../helpers/docs.ts';
import { startServer, type TestServer } from '../helpers/server.ts';
import { testSql } from '../helpers/sql.ts';

/** Remembers a list's tag; answers whether it would still be a 304 and takes the new one. */
function watch(server: TestServer, path: string, tenant = 'acme') {
  let tag = '"none"';
  return async () => {
    const answer = await server.call(`GET ${path}`, { tenant, headers: { 'if-none-match': tag } });
    tag = tagOf(answer);
    return answer.status === 304 ? 'same' : (answer.json.items as { id?: string; order_id?: string }[]);
  };
}

async function withDocs(t: TestContext, ids: readonly string[]): Promise<TestServer> {
  const server = await startServer(t);
  for (const id of ids) await createDoc(server, id);
  // A millisecond apart, so that the order is that of the names.
  const sql = testSql(t, server.databaseUrl);
  await sql`
    update docs set created_at = made.at, updated_at = made.at from (
      select id, timestamptz '2026-01-01' + rank() over (order by id) * interval '1 ms' as at from docs
    ) made where docs.id = made.id`;
  return server;
}

async function pageIds(server: TestServer, path: string) {
  const page = await server.call(`GET ${path}`);
  assert.equal(page.status, 200, page.text);
  return {
    ids: page.json.items.map((item: { id: string }) => item.id) as string[],
    next: page.json.next as string | null,
  };
}

const remove = async (server: TestServer, id: string) =>
  assert.equal((await server.call(`DELETE /v1/docs/${id}`, { headers: { 'if-match': '*' } })).status, 204);

test('30: a list is 304 while nothing it shows has changed, and 200 after an edit, a deletion, an insertion or both', async (t) => {
  const server = await withDocs(t, ['a', 'b', 'c']);
  const look = watch(server, '/v1/docs');
  assert.equal((await look()).length, 3);
  assert.equal(await look(), 'same');
  await patchDoc(server, 'b', '*', { body: 'not shown, but a new version' });
  assert.notEqual(await look(), 'same');
  await patchDoc(server, 'b', '*', { body: 'not shown, but a new version' });
  assert.equal(await look(), 'same');
  await remove(server, 'a');
  assert.equal((await look()).length, 2);
  await createDoc(server, 'd');
  await remove(server, 'b');
  // As many as before, and no newer time than before the deletion.
  assert.equal((await look()).length, 2);
  await remove(server, 'd');
  await createDoc(server, 'd');
  assert.notEqual(await look(), 'same');
  assert.equal(await look(), 'same');
});

test('30: a list changes when a transaction that began earlier commits later', async (t) => {
  const server = await startServer(t);
  const early = postgres(server.databaseUrl, { max: 1, fetch_types: false });
  atEnd(t, () => early.end({ timeout: 1 }));
  await early`begin`;
  await early`select now()`;
  const look = watch(server, '/v1/docs');
  await createDoc(server, 'later');
  await look();
  await early`insert into docs (tenant, id, title, body, version, created_at, updated_at, updated_by)
    values ('acme', 'earlier', 'x', 'x', 1, now(), now(), 'bob')`;
  assert.equal(await look(), 'same');
  await early`commit`;
  const items = await look();
  assert.deepEqual(Array.isArray(items) && items.map((item) => item.id), ['later', 'earlier']);
});

test('30: an order that an earlier transaction commits later changes the list of orders', async (t) => {
  const server = await startServer(t);
  const order = await server.call('POST /v1/orders', { key: 'o', body: { cents: 1, item: 'x' } });
  assert.equal(order.status, 201);
  const look = watch(server, '/v1/orders');
  await look();
  assert.equal(await look(), 'same');
  const sql = testSql(t, server.databaseUrl);
  // Its id was made a day before.
  await sql`insert into orders (tenant, id, cents, item, created_at)
    values ('acme', '019b0000-0000-7000-8000-000000000000', 2, 'y', now() - interval '1 day')`;
  assert.notEqual(await look(), 'same');
});

test('30: another page, another limit and another tenant never share a tag', async (t) => {
  const server = await withDocs(t, ['a', 'b', 'c', 'd']);
  const { next } = (await server.call('GET /v1/docs?limit=2')).json;
  const paths = [
    '/v1/docs',
    '/v1/docs?limit=1',
    '/v1/docs?limit=2',
    '/v1/docs?limit=4',
    '/v1/docs?limit=5',
    `/v1/docs?limit=2&after=${next}`,
  ];
  const tags = new Set<string>();
  for (const path of [...paths, '/v1/orders']) {
    for (const tenant of ['acme', 'globex']) {
      // The second tenant has no cursor of the first.
      if (tenant === 'globex' && path.includes('after')) continue;
      tags.add(tagOf(await server.call(`GET ${path}`, { tenant })));
    }
  }
  // /v1/docs says limit=20.
  assert.equal(tags.size, 2 * paths.length + 1);
});

test('30: a list is judged by If-Match too, and an unknown name in the query does not change its tag', async (t) => {
  const server = await withDocs(t, ['a']);
  const tag = tagOf(await server.call('GET /v1/docs'));
  assert.equal(tagOf(await server.call('GET /v1/docs?limit=20&utm=1')), tag);
  assert.equal((await server.call('GET /v1/docs', { headers: { 'if-match': tag } })).status, 200);
  const stale = await server.call('GET /v1/docs', { headers: { 'if-match': '"x"', 'if-none-match': tag } });
  assertProblem(stale, 412, 'precondition_failed');
  assert.deepEqual([tagOf(stale), stale.json.current_etag], [tag, tag]);
  assert.equal((await server.call('GET /v1/docs', { headers: { 'if-none-match': '*' } })).status, 304);
});

test('pages show every document once, newest first, whatever comes and goes between them', async (t) => {
  const ids = Array.from({ length: 9 }, (_, i) => `doc-${i}`);
  const server = await withDocs(t, ids);
  const first = await pageIds(server, '/v1/docs?limit=3');
  assert.deepEqual(first.ids, ['doc-8', 'doc-7', 'doc-6']);
  // Shown already, the last one shown, to be shown next, to be shown later; and new ones at the front.
  for (const id of ['doc-7', 'doc-6', 'doc-5', 'doc-1']) await remove(server, id);
  await createDoc(server, 'new');
  await patchDoc(server, 'doc-3', '*', { title: 'edited' });
  const second = await pageIds(server, `/v1/docs?limit=3&after=${first.next}`);
  assert.deepEqual(second.ids, ['doc-4', 'doc-3', 'doc-2']);
  const third = await pageIds(server, `/v1/docs?limit=3&after=${second.next}`);
  assert.deepEqual(third, { ids: ['doc-0'], next: null });
});

test('documents of one millisecond are ordered by id and split by a page without loss', async (t) => {
  const server = await withDocs(t, ['B', '_', 'a', 'b', '-', '0']);
  await testSql(t, server.databaseUrl)`update docs set created_at = '2026-01-01T00:00:00.123Z'`;
  const seen: string[] = [];
  for (let path: string | undefined = '/v1/docs?limit=1'; path !== undefined; ) {
    const page: { ids: string[]; next: string | null } = await pageIds(server, path);
    seen.push(...page.ids);
    path = page.next === null ? undefined : `/v1/docs?limit=1&after=${page.next}`;
  }
  // Byte by byte, the greatest first.
  assert.deepEqual(seen, ['b', 'a', '_', 'B', '0', '-']);
});

test('an item of the list is its document without the body', async (t) => {
  const server = await withDocs(t, ['a']);
  const { body, ...item } = (await server.call('GET /v1/docs/a')).json;
  assert.equal(body, 'one');
  assert.deepEqual((await server.call('GET /v1/docs')).json, { items: [item], next: null });
});

test('a cursor works for its own list and tenant alone, and limit is a whole number from 1 to 100', async (t) => {
  const server = await withDocs(t, ['a', 'b', 'c']);
  await server.call('POST /v1/orders', { key: 'o1', body: { cents: 1, item: 'x' } });
  await server.call('POST /v1/orders', { key: 'o2', body: { cents: 1, item: 'x' } });
  const { next } = (await server.call('GET /v1/docs?limit=1')).json;
  const orders = (await server.call('GET /v1/orders?limit=1')).json;
  assert.equal((await server.call(`GET /v1/docs?limit=7&after=${next}`)).json.items.length, 2);
  for (const after of [
    orders.next,
    `${next}x`,
    next.slice(1),
    'x',
    '',
    'x'.repeat(500),
    next.split('.')[0],
    '%F0%9F%A6%80',
  ]) {
    assertProblem(await server.call(`GET /v1/docs?after=${after}`), 400, 'invalid_cursor');
  }
  assertProblem(await server.call(`GET /v1/docs?after=${next}`, { tenant: 'globex' }), 400, 'invalid_cursor');
  assertProblem(await server.call(`GET /v1/orders?after=${next}`), 400, 'invalid_cursor');
  for (const limit of ['0', '-1', '101', '1.5', '1e1', 'x', '', '%2010', '999']) {
    assertProblem(await server.call(`GET /v1/docs?limit=${limit}`), 400, 'invalid_query');
  }
  assertProblem(await server.call('GET /v1/docs?limit=1&limit=2'), 400, 'invalid_query');
  assert.equal((await server.call('GET /v1/docs?limit=100&colour=red')).json.items.length, 3);
});
