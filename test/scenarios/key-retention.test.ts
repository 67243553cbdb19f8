import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { sweepOnce } from '../../src/idempotency/sweep.ts';
import { startServer } from '../helpers/server.ts';
import { countOrders, testSql, until } from '../helpers/sql.ts';
import { createDoor, createStage } from '../helpers/stage.ts';
import { fastest } from '../helpers/timing.ts';

const body = { cents: 1, item: 'x' };
const settings = { tombstoneMs: 3_600_000 };

/** A server that keeps answers and tombstones for an hour each and does not sweep by itself. */
async function bundle(t: TestContext, env: Record<string, string> = {}) {
  const stage = createStage();
  const server = await startServer(t, {
    env: {
      IDEMPOTENCY_TTL_S: '3600',
      IDEMPOTENCY_TOMBSTONE_S: '3600',
      IDEMPOTENCY_SWEEP_MS: '86400000',
      ...env,
    },
    procedures: stage.procedures,
  });
  const sql = testSql(t, server.databaseUrl);
  /** Moves every row back in time. */
  const age = (minutes: number) => sql`
    update idem set created_at = created_at - ${`${minutes} minutes`}::interval,
      expires_at = expires_at - ${`${minutes} minutes`}::interval, sweep_at = sweep_at - ${`${minutes} minutes`}::interval`;
  return {
    stage,
    server,
    sql,
    age,
    send: (key = 'k', b: unknown = body) => server.call('POST /v1/orders', { key, body: b }),
  };
}

for (const isSwept of [false, true]) {
  const swept = isSwept ? 'swept' : 'not swept yet';
  test(`22. a key past its retention, ${swept}, answers expired and runs nothing; past its tombstone it is free`, async (t) => {
    const { server, sql, age, send } = await bundle(t);
    const sweep = async () => isSwept && (await sweepOnce(server.db, settings));
    const first = await send();
    await age(59);
    await sweep();
    assert.equal((await send()).text, first.text);

    await age(2);
    await sweep();
    for (const sent of [body, { cents: 2, item: 'y' }, { invalid: true }]) {
      const expired = await send('k', sent);
      assert.equal(expired.status, 409);
      assert.equal(expired.json.code, 'idempotency_key_expired');
      assert.equal(expired.json.key_action, 'reconcile');
      assert.equal(expired.headers.get('x-should-retry'), 'false');
      assert.equal(expired.headers.get('retry-after'), null);
    }
    const state = (await server.call('GET /v1/idempotency-keys/k')).json;
    assert.deepEqual([state.state, state.status, state.location], ['expired', null, null]);
    assert.equal(await countOrders(sql), 1);

    await age(60);
    await sweep();
    assert.equal((await server.call('GET /v1/idempotency-keys/k')).status, 404);
    const again = await send('k', { cents: 2, item: 'y' });
    assert.equal(again.status, 201);
    assert.equal(again.headers.get('idempotent-replayed'), 'false');
    assert.equal(await countOrders(sql), 2);
    assert.equal((await server.call('GET /v1/idempotency-keys/k')).json.attempt, 1);
  });
}

test('a key whose owner failed or was lost expires like a finished one', async (t) => {
  const { stage, server, sql, age } = await bundle(t);
  const send = (key: string) => server.call('POST /v1/test/slow', { key, body: { cents: 1 } });
  stage.on('failed', { prepare: () => Promise.reject(new Error('fails')) });
  await send('failed');
  await sql`insert into idem select tenant, 'lost', fingerprint, 'in_progress', fencing_token, attempt,
    now() - interval '1 minute', created_at, expires_at, sweep_at from idem`;
  await age(61);
  for (const isSwept of [false, true]) {
    if (isSwept) assert.deepEqual(await sweepOnce(server.db, settings), { expired: 2, deleted: 0 });
    for (const key of ['failed', 'lost']) {
      assert.equal((await send(key)).json.code, 'idempotency_key_expired', key);
      assert.equal((await server.call(`GET /v1/idempotency-keys/${key}`)).json.state, 'expired');
    }
  }
});

test('the sweep deletes the stored body at expiry and keeps the row, and deletes the row after the tombstone', async (t) => {
  const { server, sql, age, send } = await bundle(t);
  await send();
  assert.deepEqual(await sweepOnce(server.db, settings), { expired: 0, deleted: 0 });
  await age(61);
  assert.deepEqual(await sweepOnce(server.db, settings), { expired: 1, deleted: 0 });
  const rows = await sql`select state, body, headers from idem`;
  assert.deepEqual({ ...rows[0] }, { state: 'expired', body: null, headers: null });
  assert.deepEqual(await sweepOnce(server.db, settings), { expired: 0, deleted: 0 });
  await age(60);
  assert.deepEqual(await sweepOnce(server.db, settings), { expired: 0, deleted: 1 });
  assert.equal((await sql`select 1 from idem`).length, 0);
});

test('without tombstones a key is free as soon as its retention is over, swept or not', async (t) => {
  const { server, sql, age, send } = await bundle(t, { IDEMPOTENCY_TOMBSTONE_S: '0' });
  await send('unswept');
  await send('swept');
  await age(61);
  assert.equal((await send('unswept')).headers.get('idempotent-replayed'), 'false');
  assert.deepEqual(await sweepOnce(server.db, { tombstoneMs: 0 }), { expired: 0, deleted: 1 });
  assert.equal((await send('swept')).headers.get('idempotent-replayed'), 'false');
  assert.equal(await countOrders(sql), 4);
});

test('the sweep runs in bounded batches, oldest first, and never touches what is in progress', async (t) => {
  const { stage, server, sql, age, send } = await bundle(t);
  const door = createDoor();
  stage.on('running', { prepare: door.pass });
  const running = server.call('POST /v1/test/slow', { key: 'running', body: { cents: 1 } });
  await door.arrived;
  for (let i = 0; i < 5; i += 1) {
    await send(`k${i}`);
    await age(1);
  }
  await age(60);
  const left = async () =>
    (await sql<{ key: string }[]>`select key from idem where state = 'done' order by key`).map((row) => row.key);
  assert.deepEqual(await sweepOnce(server.db, settings, 2), { expired: 2, deleted: 0 });
  assert.deepEqual(await left(), ['k2', 'k3', 'k4']);
  assert.deepEqual(await sweepOnce(server.db, settings, 2), { expired: 2, deleted: 0 });
  assert.deepEqual(await left(), ['k4']);
  assert.deepEqual(await sweepOnce(server.db, settings, 2), { expired: 1, deleted: 0 });
  assert.deepEqual(await sweepOnce(server.db, settings, 2), { expired: 0, deleted: 0 });

  await age(6_000);
  assert.deepEqual(await sweepOnce(server.db, settings), { expired: 0, deleted: 5 });
  assert.equal((await sql`select 1 from idem where key = 'running' and state = 'in_progress'`).length, 1);
  door.open();
  assert.equal((await running).status, 201, 'work that outlives its own retention still ends');
});

test('two sweeps at once share the work and do each row once', async (t) => {
  const { server, sql, age, send } = await bundle(t);
  await Promise.all(Array.from({ length: 40 }, (_, i) => send(`k${i}`)));
  await age(61);
  const counts = await Promise.all(Array.from({ length: 4 }, () => sweepOnce(server.db, settings, 15)));
  const swept = counts.reduce((sum, count) => sum + count.expired, 0);
  const rows = await sql`select 1 from idem where state = 'expired'`;
  assert.equal(swept, rows.length);
  assert.ok(swept >= 15 && counts.every((count) => count.expired <= 15));
});

test('the loop of a running server sweeps batch after batch by itself', async (t) => {
  const { sql, age, send } = await bundle(t, { IDEMPOTENCY_SWEEP_MS: '30' });
  await send();
  await age(61);
  await until(async () => (await sql`select 1 from idem where state = 'expired'`).length === 1);
  await age(60);
  await until(async () => (await sql`select 1 from idem`).length === 0);
});

test('22. a flood of expired rows does not slow a claim', async (t) => {
  const { sql, send } = await bundle(t);
  await send('before');
  const quick = await fastest(t, 'claim among few rows', () => send(`few-${Math.random()}`));
  await sql`insert into idem
    select 'acme', 'flood-' || n, decode('00', 'hex'), 'expired', gen_random_uuid(), 1, now() - interval '2 days',
      now() - interval '2 days', now() - interval '1 day', now() + interval '1 hour', null, null, null
    from generate_series(1, 100000) n`;
  const flooded = await fastest(t, 'claim among 100,000 expired rows', () => send(`many-${Math.random()}`));
  assert.equal(flooded.result.status, 201);
  assert.ok(flooded.ms < 3 * quick.ms + 5, `${flooded.ms} ms against ${quick.ms} ms`);
});
