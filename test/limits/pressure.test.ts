import assert from 'node:assert/strict';
import test from 'node:test';
import { pressureOf } from '../../src/limits/pressure.ts';
import { startServer } from '../helpers/server.ts';

test('waits below the limits are no pressure, above them high, far above severe', () => {
  const limits = { poolMs: 100, loopMs: 1_000 };
  const at = (poolMs: number, loopMs: number) => pressureOf({ poolMs, loopMs }, limits);
  assert.equal(at(0, 0), 'none');
  assert.equal(at(99, 999), 'none');
  assert.equal(at(100, 0), 'high');
  assert.equal(at(0, 1_000), 'high');
  assert.equal(at(249, 0), 'high');
  assert.equal(at(250, 0), 'severe');
  assert.equal(at(0, 2_500), 'severe');
});

test('when the line for connections is long, new writes are 503 at once while replays and health go on', async (t) => {
  // High from 400 ms of waiting on, severe from 1000 ms.
  const server = await startServer(t, { env: { DB_QUERY_TIMEOUT_MS: '800', WORKERS: '0' } });
  const order = { key: 'kept', body: { cents: 1, item: 'x' } };
  assert.equal((await server.call('POST /v1/orders', order)).status, 201);
  const pressure: { waits: number } = { waits: 0 };
  // The line is told by the pool's own figures; here they are what the test says.
  const stats = server.db.stats();
  t.mock.method(server.db, 'stats', () => ({ ...stats, longestWaitMs: pressure.waits }));

  pressure.waits = 500;
  const fresh = await server.call('POST /v1/orders', { key: 'new', body: { cents: 1, item: 'x' } });
  assert.equal(fresh.status, 503);
  assert.equal(fresh.json.code, 'unavailable');
  assert.equal(fresh.json.key_action, 'reuse');
  assert.equal(fresh.headers.get('retry-after'), '2');
  const replay = await server.call('POST /v1/orders', order);
  assert.deepEqual([replay.status, replay.headers.get('idempotent-replayed')], [201, 'true']);
  assert.equal((await server.call('GET /v1/orders')).status, 200);

  pressure.waits = 1_100;
  assert.equal((await server.call('GET /v1/orders')).status, 503);
  assert.equal((await server.call('POST /v1/orders', order)).status, 503);
  assert.equal((await server.call('GET /healthz')).status, 200);

  pressure.waits = 0;
  const again = await server.call('POST /v1/orders', { key: 'new', body: { cents: 1, item: 'x' } });
  assert.equal(again.status, 201, 'the refusal did not use the key up');
});
