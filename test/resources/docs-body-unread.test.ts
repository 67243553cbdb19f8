import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { tenantDigest } from '../../src/auth/tenant-digest.ts';
import { parseTagList } from '../../src/protocol/entity-tag.ts';
import { anyVersion, versionCondition } from '../../src/protocol/version-condition.ts';
import { findDoc } from '../../src/resources/docs/store.ts';
import { createDoc, patchDoc, putDoc } from '../helpers/docs.ts';
import { startServer, type TestServer } from '../helpers/server.ts';

/** 100 KB that no compression makes small: Postgres keeps them out of line. */
const big = randomBytes(75_000).toString('base64');

/** Blocks of out-of-line storage that the server's one session reads while `work` runs. */
async function toastBlocks(server: TestServer, work: () => Promise<unknown>): Promise<number> {
  const count = async () => {
    await server.db.query((sql) => sql`select pg_stat_force_next_flush()`);
    const rows = await server.db.query(
      (sql) => sql<{ blocks: number }[]>`
        select (toast_blks_hit + toast_blks_read)::int as blocks from pg_statio_user_tables where relname = 'docs'`,
    );
    return rows[0]?.blocks ?? 0;
  };
  const before = await count();
  await work();
  return (await count()) - before;
}

test('a read whose tag still holds reads nothing of a 100 KB body, nor does a write that loses', async (t) => {
  const server = await startServer(t, { env: { DB_POOL_MAX: '1' } });
  const old = await createDoc(server, 'd');
  const tag = (await putDoc(server, 'd', old, { body: { title: 'big', body: big } })).json.etag;
  const get = (headers: Record<string, string>, status: number) => async () =>
    assert.equal((await server.call('GET /v1/docs/d', { headers })).status, status);
  const whole = await toastBlocks(server, get({}, 200));
  // 8 KB each.
  assert.ok(whole >= 12, `a whole read touches ${whole} blocks`);
  assert.ok((await toastBlocks(server, get({ 'if-none-match': old }, 200))) >= 12);

  for (const headers of [
    { 'if-none-match': tag },
    { 'if-none-match': `"x", ${tag.slice(2)}` },
    { 'if-none-match': '*' },
    { 'if-match': old },
    { 'if-match': tag, 'if-none-match': tag },
  ]) {
    const status = headers['if-match'] === old ? 412 : 304;
    assert.equal(await toastBlocks(server, get(headers, status)), 0, JSON.stringify(headers));
  }
  const head = () => server.call('HEAD /v1/docs/d', { headers: { 'if-none-match': tag } });
  assert.equal(await toastBlocks(server, head), 0);
  assert.equal(await toastBlocks(server, () => server.call('GET /v1/docs')), 0);
  const losers = [
    () => putDoc(server, 'd', old, { sub: 'bob' }),
    () => patchDoc(server, 'd', old, { title: 'x' }),
    () => server.call('DELETE /v1/docs/d', { headers: { 'if-match': old } }),
    () => server.call('PUT /v1/docs/d', { headers: { 'if-none-match': '*' }, body: { title: 'x', body: '' } }),
    () => putDoc(server, 'd', old, { body: {} }),
  ];
  for (const lose of losers)
    assert.equal(await toastBlocks(server, async () => assert.equal((await lose()).status, 412)), 0);
});

test("the plan of a document's read is one index scan, and the body stands behind the comparison of versions", async (t) => {
  const server = await startServer(t, { env: { DB_POOL_MAX: '1' } });
  const tag = (await putDoc(server, 'd', await createDoc(server, 'd'), { body: { title: 'big', body: big } })).json
    .etag;
  await server.db.query(
    (sql) => sql`
      insert into docs (tenant, id, title, body, version, created_at, updated_at, updated_by)
      select 'acme', 'other-' || n, 'x', 'x', 1, now(), now(), 'alice' from generate_series(1, 1000) n`,
  );
  await server.db.query((sql) => sql`analyze docs`);
  const [{ major = 0 } = {}] = await server.db.query(
    (sql) => sql<{ major: number }[]>`select current_setting('server_version_num')::int / 10000 as major`,
  );
  const explain = async (ifNoneMatch: readonly string[]) => {
    const headers = { ifMatch: parseTagList([]), ifNoneMatch: parseTagList(ifNoneMatch) };
    const condition = ifNoneMatch.length === 0 ? anyVersion : versionCondition(headers, 'd', tenantDigest('acme'));
    // From PostgreSQL 17 the plan can also say what sending the rows costs, which is where a body is fetched.
    const serialize = major >= 17 ? 'serialize text, ' : '';
    const rows = await server.db.query(
      (sql) => sql<{ 'QUERY PLAN': string }[]>`
        explain (analyze, verbose, buffers, ${sql.unsafe(serialize)}timing off, summary off, costs off)
        ${findDoc(sql, { tenant: 'acme', id: 'd' }, condition)}`,
    );
    return rows.map((row) => row['QUERY PLAN']).join('\n');
  };
  const unread = await explain([tag]);
  t.diagnostic(unread);
  assert.match(unread, /Index Scan using docs_tenant_id_pk on/);
  assert.match(unread, /CASE WHEN .*version .*(ANY|ALL) .*THEN body ELSE NULL/);
  if (major < 17) return;
  const kilobytes = (plan: string) => Number(/output=(\d+)kB/.exec(plan)?.[1]);
  assert.ok(kilobytes(unread) <= 1, unread);
  assert.ok(kilobytes(await explain([])) >= 97);
});
