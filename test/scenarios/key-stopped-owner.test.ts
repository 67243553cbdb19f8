import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openGate } from '../helpers/gate.ts';
import { freshDatabase, slowServerFile, startProcess, startServer } from '../helpers/server.ts';
import { countOrders, holdUpdates, testSql, until } from '../helpers/sql.ts';
import { createStage } from '../helpers/stage.ts';

test('4. an owner stopped beyond its lease is taken over; when it goes on, it commits nothing', async (t) => {
  const databaseUrl = await freshDatabase(t);
  const sql = testSql(t, databaseUrl);
  const gate = await openGate(t);
  const env = { IDEMPOTENCY_LEASE_MS: '400' };
  const late = await startProcess(t, { ...env, DATABASE_URL: databaseUrl, GATE_URL: gate.url }, slowServerFile);
  const other = await startServer(t, { env, databaseUrl, procedures: createStage().procedures });

  for (const moment of ['prepare', 'before', 'after'] as const) {
    await t.test(
      `stopped ${moment === 'prepare' ? 'before its transaction' : `in it, ${moment} its write`}`,
      async () => {
        const request = { key: moment, body: { cents: 1 } };
        const ordersBefore = await countOrders(sql);
        const visitor = gate.hold(moment, moment);
        const first = late.call('POST /v1/test/slow', request);
        await visitor.arrived;
        late.child.kill('SIGSTOP');
        assert.equal((await other.call('POST /v1/test/slow', request)).json.code, 'request_in_progress');
        await until(
          async () => (await sql`select 1 from idem where key = ${moment} and lease_until < now()`).length === 1,
        );

        const winner = await other.call('POST /v1/test/slow', request);
        assert.equal(winner.status, 201, winner.text);
        assert.equal(winner.headers.get('idempotent-replayed'), 'false');

        visitor.open();
        late.child.kill('SIGCONT');
        const answer = await first;
        // It may find the winner's answer, or be told that the winner is still at it; never a success of its own.
        if (answer.status === 201) {
          assert.equal(answer.headers.get('idempotent-replayed'), 'true');
          assert.equal(answer.text, winner.text);
        } else {
          assert.equal(answer.status, 409);
          assert.equal(answer.json.code, 'request_in_progress');
        }
        assert.equal((await countOrders(sql)) - ordersBefore, 1);
        assert.equal((await other.call(`GET /v1/idempotency-keys/${moment}`)).json.attempt, 2);
        const replay = await other.call('POST /v1/test/slow', request);
        assert.equal(replay.text, winner.text);
      },
    );
  }
});

test('an owner stopped between its last UPDATE and its COMMIT is rolled back by Postgres, and the key is free again', async (t) => {
  const databaseUrl = await freshDatabase(t);
  const sql = testSql(t, databaseUrl);
  const env = { IDEMPOTENCY_LEASE_MS: '300', DB_QUERY_TIMEOUT_MS: '700' };
  const gate = await openGate(t);
  const stopped = await startProcess(t, { ...env, DATABASE_URL: databaseUrl, GATE_URL: gate.url }, slowServerFile);
  const other = await startServer(t, { env, databaseUrl, procedures: createStage().procedures });
  const request = { key: 'k', body: { cents: 1 } };

  const updates = await holdUpdates(t, databaseUrl);
  const first = stopped.call('POST /v1/test/slow', request).catch(() => undefined);
  await updates.arrived();
  stopped.child.kill('SIGSTOP');
  await updates.release();
  await until(async () => {
    const rows = await sql`select 1 from pg_stat_activity
      where state = 'idle in transaction' and datname = current_database()`;
    return rows.length === 1;
  });

  const startedMs = performance.now();
  let next = await other.call('POST /v1/test/slow', request);
  assert.equal(next.status, 409);
  await until(async () => {
    if (next.status === 409) next = await other.call('POST /v1/test/slow', request);
    return next.status !== 409;
  });
  t.diagnostic(`free again after ${Math.round(performance.now() - startedMs)} ms`);
  assert.equal(next.status, 201, next.text);
  assert.equal(next.headers.get('idempotent-replayed'), 'false');
  stopped.child.kill('SIGCONT');
  assert.notEqual((await first)?.headers.get('idempotent-replayed'), 'false');
  assert.equal(await countOrders(sql), 1);
});
