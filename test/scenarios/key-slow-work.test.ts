import assert from 'node:assert/strict';
import { test } from 'node:test';
import { problem } from '../../src/protocol/errors.ts';
import { startServer } from '../helpers/server.ts';
import { countOrders, testSql, until } from '../helpers/sql.ts';
import { createDoor, createStage } from '../helpers/stage.ts';
import { fastest } from '../helpers/timing.ts';

const body = { cents: 1 };

test('11. forty slow keyed calls on a pool of five: a GET keeps its usual time, and nothing is idle in transaction', async (t) => {
  const stage = createStage();
  const server = await startServer(t, { env: { DB_POOL_MAX: '5', WORKERS: '0' }, procedures: stage.procedures });
  const sql = testSql(t, server.databaseUrl);
  const read = () => server.call('GET /v1/orders');
  const alone = await fastest(t, 'GET alone', read);

  const doors = Array.from({ length: 40 }, () => createDoor());
  const calls = doors.map((door, i) => {
    stage.on(`k${i}`, { prepare: door.pass });
    return server.call('POST /v1/test/slow', { key: `k${i}`, body });
  });
  await Promise.all(doors.map((door) => door.arrived));
  await until(() => server.db.stats().inUse === 0);
  const open = await sql`select 1 from pg_stat_activity
    where datname = current_database() and state like 'idle in transaction%'`;
  assert.equal(open.length, 0);
  const busy = await fastest(t, 'GET beside forty slow calls', read);
  assert.equal(busy.result.status, 200);
  assert.ok(busy.ms < 3 * alone.ms + 20, `${busy.ms} ms against ${alone.ms} ms`);

  for (const door of doors) door.open();
  for (const call of await Promise.all(calls)) assert.equal(call.status, 201);
  assert.equal(await countOrders(sql), 40);
});

test('a lease is renewed while its owner lives: work of many leases is never taken over', async (t) => {
  const stage = createStage();
  const env = { IDEMPOTENCY_LEASE_MS: '800' };
  const server = await startServer(t, { env, procedures: stage.procedures });
  const other = await startServer(t, { env, databaseUrl: server.databaseUrl, procedures: stage.procedures });
  const sql = testSql(t, server.databaseUrl);
  const door = createDoor();
  stage.on('k', { prepare: door.pass });
  const first = server.call('POST /v1/test/slow', { key: 'k', body });
  await door.arrived;
  const startedMs = performance.now();
  const leases = new Set<string>();
  // Two leases and a half, asked all the time by somebody who would take over.
  await until(async () => {
    const rows = await sql<{ until: string }[]>`select lease_until::text as until from idem`;
    leases.add(rows[0]?.until ?? '');
    const duplicate = await other.call('POST /v1/test/slow', { key: 'k', body });
    assert.equal(duplicate.json.code, 'request_in_progress');
    return performance.now() - startedMs > 2_000;
  });
  assert.ok(leases.size >= 3, `${leases.size} leases`);
  door.open();
  assert.equal((await first).status, 201);
  assert.equal((await server.call('GET /v1/idempotency-keys/k')).json.attempt, 1);
});

test('4. an owner whose renewals have stopped is taken over; exactly one succeeds and the late one is refused whole', async (t) => {
  const stage = createStage();
  const env = { IDEMPOTENCY_LEASE_MS: '200' };
  const server = await startServer(t, { env, procedures: stage.procedures });
  const other = await startServer(t, { env, databaseUrl: server.databaseUrl, procedures: stage.procedures });
  const sql = testSql(t, server.databaseUrl);
  const doors = [createDoor(), createDoor()];
  let owners = 0;
  stage.on('k', { prepare: () => (doors[owners++] as (typeof doors)[number]).pass() });
  const send = (to: typeof server) => to.call('POST /v1/test/slow', { key: 'k', body });

  const late = send(server);
  await doors[0]?.arrived;
  await server.keyed.leases.stop();
  await until(async () => (await sql`select 1 from idem where lease_until < now()`).length === 1);
  const winner = send(other);
  await doors[1]?.arrived;
  // The late one ends first, while the winner is still at work.
  doors[0]?.open();
  const refused = await late;
  assert.equal(refused.status, 409);
  assert.equal(refused.json.code, 'request_in_progress');
  assert.equal(await countOrders(sql), 0);
  assert.equal((await sql`select 1 from idem where state = 'in_progress' and lease_until > now()`).length, 1);
  doors[1]?.open();
  const won = await winner;
  assert.equal(won.status, 201);
  assert.equal(won.headers.get('idempotent-replayed'), 'false');
  assert.equal(await countOrders(sql), 1);
  assert.equal((await send(server)).text, won.text);
});

test('a late owner that fails or refuses does not free the claim of its successor', async (t) => {
  const stage = createStage();
  const env = { IDEMPOTENCY_LEASE_MS: '200' };
  const server = await startServer(t, { env, procedures: stage.procedures });
  const other = await startServer(t, { env, databaseUrl: server.databaseUrl, procedures: stage.procedures });
  const sql = testSql(t, server.databaseUrl);
  await server.keyed.leases.stop();
  for (const [key, error] of [
    ['fails', new Error('fails')],
    ['refuses', problem('insufficient_credits')],
  ] as const) {
    const doors = [createDoor(), createDoor()];
    let owners = 0;
    stage.on(key, { prepare: () => (doors[owners++] as (typeof doors)[number]).pass() });
    const send = (to: typeof server) => to.call('POST /v1/test/slow', { key, body });
    const late = send(server);
    await doors[0]?.arrived;
    await until(async () => (await sql`select 1 from idem where key = ${key} and lease_until < now()`).length === 1);
    const winner = send(other);
    await doors[1]?.arrived;
    doors[0]?.fail(error);
    const answer = await late;
    assert.ok([409, 500].includes(answer.status), answer.text);
    assert.equal((await send(server)).json.code, 'request_in_progress', key);
    doors[1]?.open();
    assert.equal((await winner).status, 201);
  }
  assert.equal(await countOrders(sql), 2);
});

test('work learns by its signal that its claim was lost', async (t) => {
  const stage = createStage();
  const server = await startServer(t, { env: { IDEMPOTENCY_LEASE_MS: '150' }, procedures: stage.procedures });
  const sql = testSql(t, server.databaseUrl);
  let arrive = () => {};
  const arrived = new Promise<void>((resolve) => {
    arrive = resolve;
  });
  stage.on('k', {
    prepare: ({ signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new Error('cut')));
        arrive();
      }),
  });
  const first = server.call('POST /v1/test/slow', { key: 'k', body });
  await arrived;
  await sql`update idem set fencing_token = gen_random_uuid(), attempt = 2, lease_until = now() + interval '1 hour'`;
  const answer = await first;
  assert.equal(answer.status, 409);
  assert.equal(answer.json.code, 'request_in_progress');
  assert.equal(await countOrders(sql), 0);
});
