import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openGate } from '../helpers/gate.ts';
import { type Called, freshDatabase, slowServerFile, startProcess, startServer } from '../helpers/server.ts';
import { countOrders, holdCommits, testSql, until } from '../helpers/sql.ts';
import { createStage } from '../helpers/stage.ts';

/** Sends a request as a client that obeys Retry-After does, until it is no longer told to wait. */
async function sendUntilDone(send: () => Promise<Called>): Promise<Called> {
  for (;;) {
    const called = await send();
    if (called.json?.code !== 'request_in_progress') return called;
    await sleep(Number(called.headers.get('retry-after-ms')));
  }
}

test('1. after kill -9 in the middle of the work and a new start, the key is free no later than its lease', async (t) => {
  const leaseMs = 2_500;
  const databaseUrl = await freshDatabase(t);
  const sql = testSql(t, databaseUrl);
  const gate = await openGate(t);
  const env = { DATABASE_URL: databaseUrl, GATE_URL: gate.url, IDEMPOTENCY_LEASE_MS: String(leaseMs) };
  const request = { key: 'k', body: { cents: 1 } };

  const first = await startProcess(t, env, slowServerFile);
  const visitor = gate.hold('prepare', 'k');
  const lost = assert.rejects(first.call('POST /v1/test/slow', request));
  await visitor.arrived;
  await first.end('SIGKILL');
  const killedMs = performance.now();
  await lost;

  const second = await startProcess(t, env, slowServerFile);
  const startedAfterMs = performance.now() - killedMs;
  const atOnce = await second.call('POST /v1/test/slow', request);
  if (performance.now() - killedMs < leaseMs / 2) {
    assert.equal(atOnce.status, 409);
    assert.equal(atOnce.json.code, 'request_in_progress');
    assert.ok(Number(atOnce.headers.get('retry-after')) * 1_000 <= leaseMs);
  }
  // On a busy machine the new start takes longer than the lease, and the first try runs.
  const done = atOnce.status === 409 ? await sendUntilDone(() => second.call('POST /v1/test/slow', request)) : atOnce;
  const freeAfterMs = performance.now() - killedMs;
  t.diagnostic(`free again after ${Math.round(freeAfterMs)} ms, lease ${leaseMs} ms`);
  assert.equal(done.status, 201);
  assert.equal(done.headers.get('idempotent-replayed'), 'false');
  // One Retry-After may fall just before the end of the lease.
  assert.ok(freeAfterMs < Math.max(leaseMs, startedAfterMs) + 1_500);
  assert.equal(await countOrders(sql), 1);
  assert.equal((await second.call('GET /v1/idempotency-keys/k')).json.attempt, 2);
});

test('kill -9 inside the transaction leaves no order, and the next owner makes the only one', async (t) => {
  const databaseUrl = await freshDatabase(t);
  const sql = testSql(t, databaseUrl);
  const gate = await openGate(t);
  const env = { IDEMPOTENCY_LEASE_MS: '300' };
  const crashing = await startProcess(t, { ...env, DATABASE_URL: databaseUrl, GATE_URL: gate.url }, slowServerFile);
  const other = await startServer(t, { env, databaseUrl, procedures: createStage().procedures });
  const request = { key: 'k', body: { cents: 1 } };

  const visitor = gate.hold('after', 'k');
  const lost = assert.rejects(crashing.call('POST /v1/test/slow', request));
  await visitor.arrived;
  await crashing.end('SIGKILL');
  await lost;

  let done = await other.call('POST /v1/test/slow', request);
  await until(async () => {
    if (done.status === 409) done = await other.call('POST /v1/test/slow', request);
    return done.status !== 409;
  });
  assert.equal(done.status, 201);
  assert.equal(await countOrders(sql), 1);
});

test('5. killed after its COMMIT was sent and before it could answer: the retry gets the stored answer', async (t) => {
  const databaseUrl = await freshDatabase(t);
  const sql = testSql(t, databaseUrl);
  const crashing = await startProcess(t, { DATABASE_URL: databaseUrl });
  const other = await startServer(t, { databaseUrl });
  const request = { key: 'k', body: { cents: 3_000, item: 'pro-plan' } };

  const commits = await holdCommits(t, databaseUrl);
  const lost = assert.rejects(crashing.call('POST /v1/orders', request));
  await commits.arrived();
  await crashing.end('SIGKILL');
  await lost;
  assert.equal((await other.call('POST /v1/orders', request)).json.code, 'request_in_progress');
  await commits.release();
  await until(async () => (await sql`select 1 from idem where state = 'done'`).length === 1);

  const retry = await other.call('POST /v1/orders', request);
  assert.equal(retry.status, 201);
  assert.equal(retry.headers.get('idempotent-replayed'), 'true');
  assert.equal(await countOrders(sql), 1);
  const order = (await other.call(`GET ${retry.headers.get('location')}`)).json;
  assert.equal(order.order_id, retry.json.order_id);
});
