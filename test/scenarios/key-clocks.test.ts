import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openGate } from '../helpers/gate.ts';
import { freshDatabase, slowServerFile, startProcess } from '../helpers/server.ts';
import { countOrders, testSql, until } from '../helpers/sql.ts';

test("8. two processes whose clocks differ by twenty minutes: only the database's clock decides leases and expiry", async (t) => {
  const databaseUrl = await freshDatabase(t);
  const sql = testSql(t, databaseUrl);
  const gate = await openGate(t);
  const env = { DATABASE_URL: databaseUrl, GATE_URL: gate.url, IDEMPOTENCY_TTL_S: '60', IDEMPOTENCY_SWEEP_MS: '50' };
  const [slow, fast] = await Promise.all(
    [-600_000, 600_000].map((skew) => startProcess(t, { ...env, CLOCK_SKEW_MS: String(skew) }, slowServerFile)),
  );
  if (slow === undefined || fast === undefined) throw new Error('two servers');
  // The skew is real: the two put different dates on their log lines.
  await Promise.all([slow.call('GET /v1/orders'), fast.call('GET /v1/orders')]);
  const logLine = (lines: string[]) => lines.find((line) => line.startsWith('{'));
  await until(() => [slow, fast].every((server) => logLine(server.output) !== undefined));
  const loggedAt = (lines: string[]) => Date.parse(JSON.parse(logLine(lines) ?? '{}').time);
  assert.ok(loggedAt(fast.output) - loggedAt(slow.output) > 1_100_000);

  for (const [name, one, other] of [
    ['behind', slow, fast],
    ['ahead', fast, slow],
  ] as const) {
    const request = { key: name, body: { cents: 1 } };
    const visitor = gate.hold('prepare', name);
    const first = one.call('POST /v1/test/slow', request);
    await visitor.arrived;
    const duplicate = await other.call('POST /v1/test/slow', request);
    assert.equal(duplicate.json.code, 'request_in_progress', 'no early takeover');
    visitor.open();
    const done = await first;
    assert.equal(done.status, 201);
    const replay = await other.call('POST /v1/test/slow', request);
    assert.equal(replay.headers.get('idempotent-replayed'), 'true', 'no early expiry');
    assert.equal(replay.text, done.text);
    const expires = done.headers.get('idempotency-expires') as string;
    assert.equal(replay.headers.get('idempotency-expires'), expires);
    const left = await sql<{ s: number }[]>`select extract(epoch from ${expires}::timestamptz - now())::float8 as s`;
    assert.ok(Math.abs((left[0]?.s ?? 0) - 60) < 30, `${left[0]?.s} s left`);
  }
  assert.equal(await countOrders(sql), 2);
  const orders = await sql<{ off: number }[]>`
    select max(abs(extract(epoch from created_at - now())))::float8 as off from orders`;
  assert.ok((orders[0]?.off ?? 600) < 60);
});
