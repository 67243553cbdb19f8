import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Answer, mount } from '../../src/handler.ts';
import { problem } from '../../src/protocol/errors.ts';
import { type CallOptions, startServer, testToken } from '../helpers/server.ts';
import { countOrders, testSql } from '../helpers/sql.ts';
import { createStage, slowProcedure } from '../helpers/stage.ts';

const body = { cents: 1 };

/** Headers that belong to one answer and not to what is stored. */
const ofOneAnswer = ['date', 'x-trace-id', 'idempotent-replayed', 'connection', 'keep-alive'];

function comparable(headers: Headers): string[][] {
  return [...headers].filter(([name]) => !ofOneAnswer.includes(name)).sort();
}

test('17. a replay has the status, the bytes and the stored headers of the first answer, and no others', async (t) => {
  const stage = createStage();
  const server = await startServer(t, { procedures: stage.procedures });
  const headers = {
    Location: '/v1/x/1',
    ETag: 'W/"x-v1"',
    Link: '</v1/x/1/events>; rel="events"',
    'Content-Location': '/v1/x/1',
    'Cache-Control': 'private',
  };
  const never = {
    'Set-Cookie': 'a=b',
    'Transfer-Encoding': 'chunked',
    'Content-Length': '3',
    Connection: 'close',
    Trailer: 'x',
    'Retry-After': '9',
    'X-Trace-Id': 'stored',
    Date: 'Thu, 01 Jan 1970 00:00:00 GMT',
  };
  const awkward = { text: 'é\u0000\ud800 😀 </script>', number: 1e21, nested: [null, {}] };
  const answers: Record<string, Answer> = {
    created: { status: 201, headers: { ...headers, ...never }, body: awkward },
    accepted: { status: 202, headers, body: {} },
    empty: { status: 204, headers },
    'empty 200': { status: 200 },
    large: { status: 200, body: { text: 'x'.repeat(300_000) } },
  };
  for (const [name, answer] of Object.entries(answers)) {
    const key = name.replace(' ', '-');
    stage.on(key, { after: async () => answer });
    const first = await server.call('POST /v1/test/slow', { key, body });
    const replay = await server.call('POST /v1/test/slow', { key, body });
    assert.equal(first.status, answer.status, first.text);
    assert.equal(first.headers.get('idempotent-replayed'), 'false');
    assert.equal(replay.headers.get('idempotent-replayed'), 'true');
    assert.equal(replay.status, first.status);
    assert.equal(replay.text, first.text);
    assert.deepEqual(comparable(replay.headers), comparable(first.headers), name);
    for (const sent of [first, replay]) {
      for (const [header, value] of Object.entries(answer.headers ?? {})) {
        const isStored = header in headers;
        if (isStored) assert.equal(sent.headers.get(header), value, `${name}: ${header}`);
        else assert.notEqual(sent.headers.get(header), value, `${name}: ${header}`);
      }
      assert.match(sent.headers.get('x-trace-id') ?? '', /^[0-9a-f]{32}$/);
      if (answer.body === undefined) assert.equal(sent.headers.get('content-type'), null);
    }
    assert.notEqual(replay.headers.get('x-trace-id'), first.headers.get('x-trace-id'));
    assert.equal(stage.runs(key), 1);
  }
});

test('every stored answer and every replay say until when, and replays do not put it off', async (t) => {
  const server = await startServer(t, { env: { IDEMPOTENCY_TTL_S: '7200' } });
  const send = () => server.call('POST /v1/orders', { key: 'k', body: { cents: 1, item: 'x' } });
  const first = (await send()).headers.get('idempotency-expires') as string;
  assert.match(first, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.ok(Math.abs(Date.parse(first) - Date.now() - 7_200_000) < 60_000);
  assert.equal((await send()).headers.get('idempotency-expires'), first);
  assert.equal((await server.call('GET /v1/idempotency-keys/k')).json.expires_at, first);
});

test('19. an outcome of one try is never replayed: when the state allows it, the same key runs', async (t) => {
  const stage = createStage();
  const server = await startServer(t, { procedures: stage.procedures });
  const sql = testSql(t, server.databaseUrl);
  const codes = [
    'precondition_failed',
    'insufficient_credits',
    'rate_limited',
    'internal',
    'upstream_failed',
    'unavailable',
  ];
  for (const code of codes as Parameters<typeof problem>[0][]) {
    const before = await countOrders(sql);
    stage.on(code, { after: () => Promise.reject(problem(code, { retryAfterMs: 1_000 })) });
    const first = await server.call('POST /v1/test/slow', { key: code, body });
    assert.equal(first.json.code, code);
    const again = await server.call('POST /v1/test/slow', { key: code, body });
    assert.equal(again.json.code, code);
    assert.notEqual(again.json.trace_id, first.json.trace_id);
    assert.equal(again.headers.get('idempotent-replayed'), null);
    stage.on(code, {});
    const allowed = await server.call('POST /v1/test/slow', { key: code, body });
    assert.equal(allowed.status, 201, allowed.text);
    assert.equal(allowed.headers.get('idempotent-replayed'), 'false');
    assert.equal((await countOrders(sql)) - before, 1);
  }
});

test('a refusal that is committed on purpose is stored and replayed like a success', async (t) => {
  const stage = createStage();
  const server = await startServer(t, { procedures: stage.procedures });
  const sql = testSql(t, server.databaseUrl);
  stage.on('k', {
    after: async (_tx, ctx) => ctx.refuse(problem('precondition_failed', { members: { draft: 'paid for' } })),
  });
  const first = await server.call('POST /v1/test/slow', { key: 'k', body });
  stage.on('k', {});
  const replay = await server.call('POST /v1/test/slow', { key: 'k', body });
  assert.equal(first.status, 412);
  assert.equal(first.json.draft, 'paid for');
  assert.equal(first.headers.get('content-type'), 'application/problem+json');
  assert.equal(first.headers.get('idempotent-replayed'), 'false');
  assert.equal(replay.status, 412);
  assert.equal(replay.text, first.text);
  assert.equal(replay.headers.get('content-type'), 'application/problem+json');
  assert.equal(replay.headers.get('idempotent-replayed'), 'true');
  assert.equal(await countOrders(sql), 1, 'what was written with the refusal is there');
});

test("20. a replay needs today's permission: without a token or its scope there is none, with a fresh token there is", async (t) => {
  const server = await startServer(t, { procedures: createStage().procedures });
  const send = (options: CallOptions) => server.call('POST /v1/test/pay', { key: 'k', body, ...options });
  const first = await send({ scope: 'other test:pay' });
  assert.equal(first.status, 201);
  assert.deepEqual([(await send({ scope: 'other' })).status, (await send({})).status], [403, 403]);
  assert.equal((await send({ token: null })).status, 401);
  assert.equal((await send({ token: `${await testToken()}x` })).status, 401);
  const refreshed = await send({ sub: 'carol', scope: 'test:pay' });
  assert.equal(refreshed.text, first.text);
  assert.equal(refreshed.headers.get('idempotent-replayed'), 'true');
});

test('21. a replay, a mismatch and a duplicate cost no rate limit, and a 429 leaves the key free', async (t) => {
  const stage = createStage();
  const server = await startServer(t, {
    env: { RATE_LIMIT_BURST: '2', RATE_LIMIT_RPM: '1' },
    procedures: stage.procedures,
  });
  const sql = testSql(t, server.databaseUrl);
  const send = (key: string, cents = 1) => server.call('POST /v1/test/spend', { key, body: { cents } });
  const first = await send('a');
  assert.equal(first.status, 201);
  for (let i = 0; i < 5; i += 1) assert.equal((await send('a')).text, first.text);
  assert.equal((await send('a', 2)).status, 409);
  assert.equal((await send('b')).status, 201);

  const limited = await send('c');
  assert.equal(limited.status, 429);
  assert.equal(limited.json.code, 'rate_limited');
  assert.equal(limited.json.key_action, 'reuse');
  assert.ok(Number(limited.headers.get('retry-after')) >= 1 && Number(limited.headers.get('retry-after')) <= 60);
  assert.ok(Number(limited.headers.get('retry-after-ms')) > 0);
  assert.equal((await server.call('GET /v1/idempotency-keys/c')).status, 404);
  assert.equal((await send('a')).text, first.text, 'a replay comes before the limit');
  const invalid = await server.call('POST /v1/test/spend', { key: 'd', body: {} });
  assert.equal(invalid.status, 429, 'the limit comes before the schema');
  assert.equal((await server.call('POST /v1/test/spend', { key: 'e', body, tenant: 'globex' })).status, 201);

  await sql`update buckets set tokens = 1`;
  const later = await send('c');
  assert.equal(later.status, 201);
  assert.equal(later.headers.get('idempotent-replayed'), 'false');
});

test('a retry of one’s own success gets it although today it would be refused: invalid by a newer schema', async (t) => {
  const stage = createStage();
  const old = await startServer(t, { procedures: stage.procedures });
  const first = await old.call('POST /v1/test/slow', { key: 'k', body: { cents: 1, note: 'fine in its day' } });
  assert.equal(first.status, 201);
  const { note: _gone, ...entries } = slowProcedure.body.entries;
  const narrowed = { ...slowProcedure, body: { ...slowProcedure.body, entries } as typeof slowProcedure.body };
  const renewed = await startServer(t, {
    databaseUrl: old.databaseUrl,
    procedures: () => [
      mount(narrowed, {
        async commit() {
          throw new Error('must not run');
        },
      }),
    ],
  });
  const send = (key: string) =>
    renewed.call('POST /v1/test/slow', { key, body: { cents: 1, note: 'fine in its day' } });
  assert.equal((await send('other')).status, 422);
  const replay = await send('k');
  assert.equal(replay.text, first.text);
  assert.equal(replay.headers.get('idempotent-replayed'), 'true');
});

test('the claim of a procedure that pays is flushed before it runs, that of database work is not', async (t) => {
  const server = await startServer(t, { procedures: createStage().procedures });
  const sql = testSql(t, server.databaseUrl);
  await sql.unsafe(`
    create table seen (key text, is_flushed boolean);
    create function note_setting() returns trigger language plpgsql as $$
    begin insert into seen values (new.key, current_setting('synchronous_commit') <> 'off'); return null; end $$;
    create trigger note_setting after insert on idem for each row execute function note_setting();
    alter database ${new URL(server.databaseUrl).pathname.slice(1)} set synchronous_commit = on`);
  // A server whose sessions begin after the setting.
  const flushing = await startServer(t, { databaseUrl: server.databaseUrl, procedures: createStage().procedures });
  await flushing.call('POST /v1/test/slow', { key: 'works', body });
  await flushing.call('POST /v1/test/pay', { key: 'pays', body, scope: 'test:pay' });
  const seen = await sql<{ key: string; is_flushed: boolean }[]>`select * from seen`;
  assert.deepEqual(Object.fromEntries(seen.map((row) => [row.key, row.is_flushed])), { works: false, pays: true });
});

test('a key that is only accepted works like a required one, and without it the write just runs', async (t) => {
  const stage = createStage();
  const server = await startServer(t, { procedures: stage.procedures });
  const sql = testSql(t, server.databaseUrl);
  const put = (key?: string) => server.call('PUT /v1/test/slow', { body, ...(key === undefined ? {} : { key }) });
  const first = await put('k');
  assert.equal((await put('k')).text, first.text);
  const bare = await put();
  assert.equal(bare.status, 201);
  assert.equal(bare.headers.get('idempotent-replayed'), null);
  assert.equal(bare.headers.get('idempotency-expires'), null);
  await put();
  assert.equal(await countOrders(sql), 3);
});
