import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type CallOptions, startServer, type TestServer } from '../helpers/server.ts';
import { countOrders, testSql, until } from '../helpers/sql.ts';
import { createDoor, createStage } from '../helpers/stage.ts';

const body = { cents: 1 };

/** A server with one connection, whose key `k` runs until the door is opened. */
async function bundle(t: TestContext, env: Record<string, string> = {}) {
  const stage = createStage();
  const server = await startServer(t, { env: { DB_POOL_MAX: '1', ...env }, procedures: stage.procedures });
  const door = createDoor();
  stage.on('k', { prepare: door.pass });
  const sql = testSql(t, server.databaseUrl);
  return { stage, server, door, sql };
}

const send = (server: TestServer, prefer?: string, options: CallOptions = {}) =>
  server.call('POST /v1/test/slow', { key: 'k', body, ...options, headers: prefer === undefined ? {} : { prefer } });

const isParked = (server: TestServer, count = 1) => until(() => server.keyed.waitingRoom.count() === count);

test('duplicates that prefer to wait are parked without a connection and get the answer as soon as there is one', async (t) => {
  const { server, door, stage } = await bundle(t);
  const first = send(server);
  await door.arrived;
  const duplicates = Array.from({ length: 40 }, () => send(server, 'wait=20'));
  await isParked(server, 40);
  // The one connection is free: others are served as usual, and nobody has it while all wait.
  assert.equal((await server.call('GET /v1/orders')).status, 200);
  assert.equal((await server.call('POST /v1/orders', { key: 'other', body: { cents: 1, item: 'x' } })).status, 201);
  assert.equal((await send(server)).json.code, 'request_in_progress', 'without the preference: at once');
  const openedMs = performance.now();
  door.open();
  const answer = await first;
  assert.equal(answer.headers.get('preference-applied'), null);
  for (const duplicate of await Promise.all(duplicates)) {
    assert.equal(duplicate.status, 201);
    assert.equal(duplicate.text, answer.text);
    assert.equal(duplicate.headers.get('idempotent-replayed'), 'true');
    assert.equal(duplicate.headers.get('preference-applied'), 'wait=20');
  }
  t.diagnostic(`40 answered ${Math.round(performance.now() - openedMs)} ms after the end`);
  assert.equal(stage.runs('k'), 1);
});

test('a duplicate parked in another process gets the answer too', async (t) => {
  const { server, door, stage } = await bundle(t);
  const other = await startServer(t, {
    databaseUrl: server.databaseUrl,
    env: { DB_POOL_MAX: '1' },
    procedures: stage.procedures,
  });
  const first = send(server);
  await door.arrived;
  const duplicate = send(other, 'wait=20');
  await isParked(other);
  door.open();
  const { text } = await first;
  const replay = await duplicate;
  assert.equal(replay.text, text);
  assert.equal(replay.headers.get('preference-applied'), 'wait=20');
});

test('when the time is up the duplicate is told that the first still runs, and how long it was let wait', async (t) => {
  const { server, door } = await bundle(t);
  const first = send(server);
  await door.arrived;
  const startedMs = performance.now();
  const told = await send(server, 'respond-async, wait=1; foo=bar');
  const waitedMs = performance.now() - startedMs;
  assert.equal(told.status, 409);
  assert.equal(told.json.code, 'request_in_progress');
  assert.equal(told.headers.get('preference-applied'), 'wait=1');
  assert.equal(told.headers.get('retry-after'), '1');
  assert.ok(waitedMs >= 950 && waitedMs < 5_000, `${waitedMs} ms`);
  door.open();
  assert.equal((await first).status, 201);
});

test('more than thirty seconds are not granted; zero and nonsense are no wait', async (t) => {
  const { server, door } = await bundle(t);
  const first = send(server);
  await door.arrived;
  const duplicate = send(server, 'wait=86400');
  await isParked(server);
  for (const prefer of ['wait=0', 'wait=-1', 'wait=x', 'wait', 'return=minimal', 'wait=1.5']) {
    const told = await send(server, prefer);
    assert.equal(told.json.code, 'request_in_progress', prefer);
    assert.equal(told.headers.get('preference-applied'), null, prefer);
  }
  door.open();
  assert.equal((await duplicate).headers.get('preference-applied'), 'wait=30');
  assert.equal((await first).status, 201);
});

test('an answer that nobody had to wait for says nothing of the preference', async (t) => {
  const { server, door } = await bundle(t);
  door.open();
  const first = await send(server, 'wait=5');
  const replay = await send(server, 'wait=5');
  assert.deepEqual([first.status, replay.status], [201, 201]);
  assert.equal(first.headers.get('preference-applied'), null);
  assert.equal(replay.headers.get('preference-applied'), null);
});

test('a mismatch is told at once, wait or not', async (t) => {
  const { server, door } = await bundle(t);
  const first = send(server);
  await door.arrived;
  const other = await send(server, 'wait=20', { body: { cents: 2 } });
  assert.equal(other.json.code, 'idempotency_key_reused');
  assert.equal(other.headers.get('preference-applied'), null);
  door.open();
  assert.equal((await first).status, 201);
});

test('a client that goes away leaves the waiting room, and the others stay', async (t) => {
  const { server, door } = await bundle(t);
  const first = send(server);
  await door.arrived;
  const client = new AbortController();
  const gone = assert.rejects(send(server, 'wait=30', { signal: client.signal }), { name: 'AbortError' });
  const staying = send(server, 'wait=30');
  await isParked(server, 2);
  client.abort();
  await gone;
  await isParked(server, 1);
  door.open();
  assert.equal((await staying).text, (await first).text);
});

test('when the first fails, one of the parked takes over at once and the others get its answer', async (t) => {
  const { server, door, stage, sql } = await bundle(t);
  const first = send(server);
  await door.arrived;
  const parked = Array.from({ length: 5 }, () => send(server, 'wait=20'));
  await isParked(server, 5);
  stage.on('k', {});
  door.fail(new Error('fails'));
  assert.equal((await first).status, 500);
  const answers = await Promise.all(parked);
  assert.deepEqual(new Set(answers.map((answer) => answer.status)), new Set([201]));
  assert.equal(new Set(answers.map((answer) => answer.text)).size, 1);
  assert.equal(answers.filter((answer) => answer.headers.get('idempotent-replayed') === 'false').length, 1);
  for (const answer of answers) assert.equal(answer.headers.get('preference-applied'), 'wait=20');
  assert.equal(await countOrders(sql), 1);
});

test('when the owner is lost while a duplicate is parked, the duplicate takes over once the lease has run out', async (t) => {
  const stage = createStage();
  const env = { IDEMPOTENCY_LEASE_MS: '60000' };
  const server = await startServer(t, { env, procedures: stage.procedures });
  const sql = testSql(t, server.databaseUrl);
  // An owner of a process that is gone: its row is all that is left of it.
  await send(server);
  await sql`update idem set state = 'in_progress', status = null, headers = null, body = null,
    fencing_token = gen_random_uuid(), lease_until = now() + interval '1 minute'`;
  await sql`delete from orders`;
  const duplicate = send(server, 'wait=20');
  await isParked(server);
  await sql`update idem set lease_until = now()`;
  const answer = await duplicate;
  assert.equal(answer.status, 201);
  assert.equal(answer.headers.get('idempotent-replayed'), 'false');
  assert.equal(answer.headers.get('preference-applied'), 'wait=20');
  assert.equal(await countOrders(sql), 1);
  assert.equal((await server.call('GET /v1/idempotency-keys/k')).json.attempt, 2);
});
