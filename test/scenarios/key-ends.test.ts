import assert from 'node:assert/strict';
import { test } from 'node:test';
import { problem } from '../../src/protocol/errors.ts';
import { type Called, startServer } from '../helpers/server.ts';
import { countOrders, holdCommits, testSql, until } from '../helpers/sql.ts';
import { createDoor, createStage, type Play } from '../helpers/stage.ts';

const body = { cents: 1 };
const fault = () => new Error('the detail that stays in the log');

/** Every way in which work can fail, and the status its caller gets. */
const failures: readonly [how: string, status: number, play: Play][] = [
  ['prepare throws', 500, { prepare: () => Promise.reject(fault()) }],
  [
    'prepare throws at once',
    500,
    {
      prepare() {
        throw fault();
      },
    },
  ],
  ['the transaction throws before its write', 500, { before: () => Promise.reject(fault()) }],
  ['the transaction throws after its write', 500, { after: () => Promise.reject(fault()) }],
  ['something that is no Error is thrown', 500, { after: () => Promise.reject('a string') }],
  ['a statement fails', 500, { after: async (tx) => void (await tx.sql`select 1 / 0`) as undefined }],
  [
    'a failed statement is swallowed',
    500,
    { after: async (tx) => void (await tx.sql`select 1 / 0`.catch(() => {})) as undefined },
  ],
  ['the provider is busy', 503, { prepare: () => Promise.reject(problem('upstream_busy', { retryAfterMs: 2_000 })) }],
  ['a deadlock', 503, { after: async (tx) => void (await raise(tx, '40P01')) as undefined }],
  ['a refusal before the transaction', 402, { prepare: () => Promise.reject(problem('insufficient_credits')) }],
  ['a refusal after the write', 412, { after: () => Promise.reject(problem('precondition_failed')) }],
  ['an answer that is no JSON', 500, { after: async () => ({ status: 201, body: { cents: 10n } }) }],
];

function raise(tx: Parameters<NonNullable<Play['before']>>[0], code: string) {
  return tx.sql.unsafe(`do $$ begin raise exception using errcode = '${code}'; end $$`);
}

test('2, 3. however the work fails, nothing of it is there and the key is free at once', async (t) => {
  const stage = createStage();
  const server = await startServer(t, { procedures: stage.procedures });
  const sql = testSql(t, server.databaseUrl);
  for (const [how, status, play] of failures) {
    await t.test(how, async () => {
      const before = await countOrders(sql);
      const send = () => server.call('POST /v1/test/slow', { key: how.replaceAll(' ', '-'), body });
      stage.on(how.replaceAll(' ', '-'), play);
      const failed = await send();
      assert.equal(failed.status, status, failed.text);
      assert.equal(failed.json.key_action, 'reuse');
      assert.equal(failed.headers.get('idempotent-replayed'), null);
      assert.doesNotMatch(failed.text, /detail|division|string/);
      assert.equal(await countOrders(sql), before);
      assert.equal(server.keyed.leases.count(), 0);

      stage.on(how.replaceAll(' ', '-'), {});
      const retry = await send();
      assert.equal(retry.status, 201, retry.text);
      assert.equal(retry.headers.get('idempotent-replayed'), 'false');
      assert.equal((await countOrders(sql)) - before, 1);
    });
  }
});

test('after a 5xx the key is bound to its request, after a 4xx it is as if never used', async (t) => {
  const stage = createStage();
  const server = await startServer(t, { procedures: stage.procedures });
  const send = (key: string, cents: number) => server.call('POST /v1/test/slow', { key, body: { cents } });
  stage.on('faulty', { prepare: () => Promise.reject(fault()) });
  stage.on('refused', { prepare: () => Promise.reject(problem('insufficient_credits')) });
  assert.equal((await send('faulty', 1)).status, 500);
  assert.equal((await send('refused', 1)).status, 402);
  assert.equal((await server.call('GET /v1/idempotency-keys/faulty')).json.state, 'released');
  assert.equal((await server.call('GET /v1/idempotency-keys/refused')).status, 404);

  const other = await send('faulty', 2);
  assert.equal(other.status, 409);
  assert.equal(other.json.code, 'idempotency_key_reused');
  stage.on('faulty', {});
  stage.on('refused', {});
  assert.equal((await send('faulty', 1)).status, 201);
  assert.equal((await send('refused', 2)).status, 201);
  assert.equal((await server.call('GET /v1/idempotency-keys/faulty')).json.attempt, 2);
  assert.equal((await server.call('GET /v1/idempotency-keys/refused')).json.attempt, 1);
});

test('3. the client goes away in the middle: the work goes on, and the retry gets its outcome', async (t) => {
  const stage = createStage();
  const server = await startServer(t, { procedures: stage.procedures });
  const sql = testSql(t, server.databaseUrl);
  for (const moment of ['prepare', 'after'] as const) {
    const door = createDoor();
    stage.on(moment, {
      async [moment]() {
        await door.pass();
        return undefined;
      },
    });
    const client = new AbortController();
    const send = (signal?: AbortSignal): Promise<Called> =>
      server.call('POST /v1/test/slow', { key: moment, body, ...(signal === undefined ? {} : { signal }) });
    const lost = assert.rejects(send(client.signal), { name: 'AbortError' });
    await door.arrived;
    client.abort();
    await lost;
    assert.equal((await send()).json.code, 'request_in_progress');
    door.open();
    await until(async () => (await sql`select 1 from idem where key = ${moment} and state = 'done'`).length === 1);
    const retry = await send();
    assert.equal(retry.status, 201);
    assert.equal(retry.headers.get('idempotent-replayed'), 'true');
    assert.equal(stage.runs(moment), 1);
  }
  assert.equal(await countOrders(sql), 2);
});

test('work that exceeds the query limit inside its transaction is 503, rolled back, and the key is free at once', async (t) => {
  const stage = createStage();
  const server = await startServer(t, { env: { DB_QUERY_TIMEOUT_MS: '500' }, procedures: stage.procedures });
  const sql = testSql(t, server.databaseUrl);
  stage.on('k', { after: async (tx) => void (await tx.sql`select pg_sleep(5)`) as undefined });
  const send = () => server.call('POST /v1/test/slow', { key: 'k', body });
  const late = await send();
  assert.equal(late.status, 503, late.text);
  assert.equal(late.json.key_action, 'reuse');
  stage.on('k', {});
  const retry = await send();
  assert.equal(retry.status, 201, retry.text);
  assert.equal(await countOrders(sql), 1);
});

test('work that is given up in its COMMIT is 503, and its key is free when Postgres has let go, not after the lease', async (t) => {
  const server = await startServer(t, { env: { DB_QUERY_TIMEOUT_MS: '700', IDEMPOTENCY_LEASE_MS: '60000' } });
  const sql = testSql(t, server.databaseUrl);
  const commits = await holdCommits(t, server.databaseUrl);
  const send = () => server.call('POST /v1/orders', { key: 'k', body: { cents: 1, item: 'x' } });
  const late = await send();
  assert.equal(late.status, 503, late.text);
  assert.equal(late.json.key_action, 'reuse');
  await commits.release();
  let retry = await send();
  await until(async () => {
    if (retry.status === 409) retry = await send();
    return retry.status !== 409;
  });
  assert.equal(retry.status, 201, retry.text);
  assert.equal(await countOrders(sql), 1);
});

test('6. a row that is there when the claim is made and gone when it is read is claimed again, never run without a claim', async (t) => {
  const stage = createStage();
  const server = await startServer(t, { procedures: stage.procedures });
  const sql = testSql(t, server.databaseUrl);
  // Rows come and go under the feet of every claim: refusals delete theirs while copies are looking.
  let n = 0;
  stage.on('k', {
    async after() {
      n += 1;
      if (n % 2 === 1) throw problem('precondition_failed');
      return undefined;
    },
  });
  const answers: Called[] = [];
  for (let round = 0; round < 20 && !answers.some((answer) => answer.status === 201); round += 1) {
    const copies = Array.from({ length: 20 }, () => server.call('POST /v1/test/slow', { key: 'k', body }));
    answers.push(...(await Promise.all(copies)));
  }
  const statuses = new Set(answers.map((answer) => answer.status));
  for (const status of statuses) assert.ok([201, 409, 412].includes(status), String(status));
  assert.equal(await countOrders(sql), 1);
  assert.equal(answers.filter((answer) => answer.headers.get('idempotent-replayed') === 'false').length, 1);
});
