import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { openGate, type Visitor } from './gate.ts';
import { call, freshDatabase, type ServerProcess, slowServerFile, startProcess } from './server.ts';
import { countOrders, testSql, until } from './sql.ts';

/** Where a proxy that sends requests again stands: before two processes. */
export type StartProxy = (t: TestContext, backends: readonly string[]) => Promise<string>;

const path = '/v1/test/slow';
const leaseMs = 1_500;

/** Two processes whose slow requests wait at gates of their own, behind the proxy. */
async function twoBehind(t: TestContext, startProxy: StartProxy) {
  const databaseUrl = await freshDatabase(t);
  const start = async () => {
    const gate = await openGate(t);
    const env = { DATABASE_URL: databaseUrl, GATE_URL: gate.url, IDEMPOTENCY_LEASE_MS: String(leaseMs) };
    return { gate, process: await startProcess(t, env, slowServerFile) };
  };
  const both = await Promise.all([start(), start()]);
  const url = await startProxy(
    t,
    both.map(({ process }) => process.url),
  );
  const sql = testSql(t, databaseUrl);
  /** Lets the next owner of the key wait, whichever process it comes to; one after it passes. */
  const hold = (key: string): (() => Promise<{ visitor: Visitor; owner: ServerProcess }>) => {
    const visitors = both.map(({ gate, process }) => ({ visitor: gate.hold('prepare', key), owner: process }));
    return async () => {
      const first = await Promise.race(visitors.map((entry) => entry.visitor.arrived.then(() => entry)));
      for (const { visitor } of visitors) if (visitor !== first.visitor) void visitor.arrived.then(visitor.open);
      return first;
    };
  };
  const request = (key: string) => call(url, `POST ${path}`, { key, body: { cents: 1 } });
  /** Requests that the processes have answered, as their logs tell. */
  const answered = () =>
    both.flatMap(({ process }) => process.output).filter((line) => line.includes(`"route":"${path}"`)).length;
  return { sql, hold, request, answered };
}

/** A POST that takes longer than the proxy waits goes to the second process while the first still runs: one order. */
export async function checkResentWhileRunning(t: TestContext, startProxy: StartProxy): Promise<void> {
  const { sql, hold, request, answered } = await twoBehind(t, startProxy);
  const arrived = hold('slow');
  const first = request('slow');
  const { visitor } = await arrived();
  const told = await first;
  assert.equal(told.status, 409, told.text);
  assert.equal(told.json.code, 'request_in_progress');
  assert.ok(Number(told.headers.get('retry-after')) >= 1);

  visitor.open();
  let done = await request('slow');
  await until(async () => {
    if (done.status === 409) done = await request('slow');
    return done.status !== 409;
  });
  assert.equal(done.status, 201, done.text);
  assert.equal(done.headers.get('idempotent-replayed'), 'true');
  assert.equal(await countOrders(sql), 1);
  await until(() => answered() >= 3);
}

/** A process that is killed in the middle: the proxy tries the other, which says that the first may still run, and takes over after the lease. */
export async function checkResentAfterKill(t: TestContext, startProxy: StartProxy): Promise<void> {
  const { sql, hold, request } = await twoBehind(t, startProxy);
  const arrived = hold('lost');
  const first = request('lost');
  const { owner } = await arrived();
  await owner.end('SIGKILL');
  let done = await first;
  assert.ok(done.status === 409 || done.status === 201, done.text);
  await until(async () => {
    if (done.status !== 201) done = await request('lost');
    return done.status === 201;
  });
  assert.equal(done.headers.get('idempotent-replayed'), 'false');
  assert.equal(await countOrders(sql), 1);
  const replay = await request('lost');
  assert.equal(replay.text, done.text);
}
