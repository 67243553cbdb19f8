import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { renew } from '../../src/idempotency/claims.ts';
import { sweepOnce } from '../../src/idempotency/sweep.ts';
import { type Called, startServer, type TestServer } from '../helpers/server.ts';
import { holdCommits, holdTransaction, testSql, until } from '../helpers/sql.ts';
import { createDoor, createStage } from '../helpers/stage.ts';
import { fastest, toldWithinMs } from '../helpers/timing.ts';

/*
 * The first request is held inside its transaction, and everybody else must be told at once. A statement that waits for the
 * row instead would end here at the query deadline, with 503.
 */
const env = { DB_QUERY_TIMEOUT_MS: '1500', IDEMPOTENCY_SWEEP_MS: '3600000' };
const order = { cents: 3_000, item: 'pro-plan' };
const slow = { cents: 3_000 };

async function assertToldAtOnce(t: TestContext, what: string, duplicate: () => Promise<Called>): Promise<void> {
  const { ms, result } = await fastest(t, what, duplicate);
  assert.equal(result.status, 409, result.text);
  assert.equal(result.json.code, 'request_in_progress');
  assert.ok(ms < toldWithinMs, `${what}: ${ms} ms`);
}

/** The first ends as if nothing had happened, and the duplicate gets its answer. */
async function assertReplays(first: Promise<Called>, duplicate: () => Promise<Called>): Promise<void> {
  const { status, text, headers } = await first;
  assert.equal(status, 201, text);
  assert.equal(headers.get('idempotent-replayed'), 'false');
  const replay = await duplicate();
  assert.equal(replay.status, 201);
  assert.equal(replay.headers.get('idempotent-replayed'), 'true');
  assert.equal(replay.text, text);
}

const bothForms = [
  { form: 'one statement', line: 'POST /v1/orders', body: order },
  { form: 'a transaction', line: 'POST /v1/test/slow', body: slow },
];

for (const { form, line, body } of bothForms) {
  test(`10. a duplicate is told at once while the first, ${form}, sits between its last UPDATE and its COMMIT`, async (t) => {
    const server = await startServer(t, { env, procedures: createStage().procedures });
    const commits = await holdCommits(t, server.databaseUrl);
    const send = () => server.call(line, { key: 'k', body });
    const first = send();
    await commits.arrived();
    await assertToldAtOnce(t, 'duplicate', send);
    await commits.release();
    await assertReplays(first, send);
  });

  test(`a takeover is not waited for while the first, ${form}, whose lease has run out sits in its COMMIT`, async (t) => {
    const server = await startServer(t, {
      env: { ...env, IDEMPOTENCY_LEASE_MS: '50' },
      procedures: createStage().procedures,
    });
    const sql = testSql(t, server.databaseUrl);
    const commits = await holdCommits(t, server.databaseUrl);
    const send = () => server.call(line, { key: 'k', body });
    const first = send();
    await commits.arrived();
    await until(async () => (await sql`select 1 from idem where lease_until < now()`).length === 1);
    await assertToldAtOnce(t, 'takeover', send);
    await commits.release();
    await assertReplays(first, send);
    assert.equal((await server.call('GET /v1/idempotency-keys/k')).json.attempt, 1);
  });
}

test('the claim is committed before the work begins, so the first insert is never what a duplicate waits for', async (t) => {
  const stage = createStage();
  const server = await startServer(t, { env, procedures: stage.procedures });
  const other = await startServer(t, { env, databaseUrl: server.databaseUrl, procedures: stage.procedures });
  const sql = testSql(t, server.databaseUrl);
  for (const moment of ['prepare', 'before', 'after'] as const) {
    const door = createDoor();
    stage.on(moment, {
      async [moment]() {
        await door.pass();
        return undefined;
      },
    });
    const send = (to: TestServer) => to.call('POST /v1/test/slow', { key: moment, body: slow });
    const first = send(server);
    await door.arrived;
    assert.equal((await sql`select 1 from idem where key = ${moment} and state = 'in_progress'`).length, 1);
    await assertToldAtOnce(t, `in ${moment}, same process`, () => send(server));
    await assertToldAtOnce(t, `in ${moment}, another process`, () => send(other));
    door.open();
    await assertReplays(first, () => send(other));
    assert.equal(stage.runs(moment), 1);
  }
});

test('while the first sits in its COMMIT, its state, another body and an invalid body are answered at once too', async (t) => {
  const server = await startServer(t, { env });
  const commits = await holdCommits(t, server.databaseUrl);
  const send = (body: unknown) => server.call('POST /v1/orders', { key: 'k', body });
  const first = send(order);
  await commits.arrived();
  const probes: [what: string, status: number, code: string | undefined, probe: () => Promise<Called>][] = [
    ['state', 200, undefined, () => server.call('GET /v1/idempotency-keys/k')],
    ['another body', 409, 'idempotency_key_reused', () => send({ ...order, cents: 1 })],
    ['an invalid body', 409, 'idempotency_key_reused', () => send({ cents: 'x' })],
    ['another key', 422, 'invalid_body', () => server.call('POST /v1/orders', { key: 'other', body: {} })],
  ];
  for (const [what, status, code, probe] of probes) {
    const { ms, result } = await fastest(t, what, probe);
    assert.equal(result.status, status, what);
    assert.equal(result.json.code, code, what);
    assert.ok(ms < toldWithinMs, `${what}: ${ms} ms`);
  }
  await commits.release();
  assert.equal((await first).status, 201);
});

test('a key that sits in its COMMIT holds up no claim of another key that travels in the same statement', async (t) => {
  const server = await startServer(t, { env });
  const commits = await holdCommits(t, server.databaseUrl, 'held');
  const send = (key: string) => server.call('POST /v1/orders', { key, body: order });
  const first = send('held');
  await commits.arrived();
  const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => [send('held'), send(`free-${i}`)]).flat());
  assert.deepEqual(
    answers.map((answer) => answer.status),
    Array.from({ length: 20 }, () => [409, 201]).flat(),
  );
  await commits.release();
  assert.equal((await first).status, 201);
});

test('a renewal passes over a claim in its COMMIT, still counts it as ours and renews the others', async (t) => {
  const stage = createStage();
  const server = await startServer(t, { env, procedures: stage.procedures });
  const sql = testSql(t, server.databaseUrl);
  const commits = await holdCommits(t, server.databaseUrl, 'committing');
  const door = createDoor();
  stage.on('working', { prepare: door.pass });
  const committing = server.call('POST /v1/test/slow', { key: 'committing', body: slow });
  const working = server.call('POST /v1/test/slow', { key: 'working', body: slow });
  await Promise.all([commits.arrived(), door.arrived]);

  const claims = await sql<{ tenant: string; key: string; fencingToken: string; until: string }[]>`
    select tenant, key, fencing_token as "fencingToken", lease_until::text as until from idem order by key`;
  const ours = await renew(server.db, 15_000, claims);
  assert.deepEqual(ours, new Set(claims.map((claim) => claim.fencingToken)));
  const after = await sql`select lease_until::text as until from idem order by key`;
  assert.equal(after[0]?.until, claims[0]?.until);
  assert.notEqual(after[1]?.until, claims[1]?.until);

  door.open();
  await commits.release();
  assert.deepEqual([(await committing).status, (await working).status], [201, 201]);
});

test('the sweep passes over a row that somebody holds and does the others', async (t) => {
  const server = await startServer(t, { env });
  const sql = testSql(t, server.databaseUrl);
  for (const key of ['held', 'free']) await server.call('POST /v1/orders', { key, body: order });
  await sql`update idem set expires_at = now() - interval '1 second', sweep_at = now() - interval '1 second'`;
  const held = await holdTransaction(t, server.databaseUrl, (s) => s`select 1 from idem where key = 'held' for update`);
  assert.deepEqual(await sweepOnce(server.db, { tombstoneMs: 1_000_000 }), { expired: 1, deleted: 0 });
  await held.release();
  assert.deepEqual(await sweepOnce(server.db, { tombstoneMs: 1_000_000 }), { expired: 1, deleted: 0 });
});

test('a key past its tombstone whose row somebody holds is told of at once, and is free once the row is gone', async (t) => {
  const server = await startServer(t, { env });
  const sql = testSql(t, server.databaseUrl);
  const send = () => server.call('POST /v1/orders', { key: 'k', body: order });
  const { text } = await send();
  await sql`update idem set expires_at = now() - interval '1 year'`;
  const held = await holdTransaction(t, server.databaseUrl, (s) => s`delete from idem`);
  await assertToldAtOnce(t, 'gone row', send);
  await held.release();
  const again = await send();
  assert.equal(again.status, 201);
  assert.notEqual(again.text, text);
});
