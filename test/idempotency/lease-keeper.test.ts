import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { type Database, openDatabase } from '../../src/db/pool.ts';
import { type Claim, claimBatch } from '../../src/idempotency/claims.ts';
import { FenceLost } from '../../src/idempotency/fence-lost.ts';
import { createLeaseKeeper } from '../../src/idempotency/lease-keeper.ts';
import { atEnd } from '../helpers/cleanup.ts';
import { freshDatabase } from '../helpers/server.ts';
import { holdTransaction, testSql, until } from '../helpers/sql.ts';

const leaseMs = 60_000;

/** A keeper whose rounds the test calls; `clock.ms` is its time. */
async function bundle(t: TestContext) {
  const url = await freshDatabase(t);
  const db = openDatabase({ url, max: 2, prepare: true, queryTimeoutMs: 5_000 });
  atEnd(t, () => db.close(1_000));
  const clock = { ms: 0 };
  const errors: unknown[] = [];
  const keeper = createLeaseKeeper(
    db,
    leaseMs,
    (error) => errors.push(error),
    () => clock.ms,
  );
  atEnd(t, () => keeper.stop());
  const claim = async (key: string): Promise<Claim> => {
    const ours = { tenant: 'acme', key, fencingToken: randomUUID() };
    const wanted = { ...ours, fingerprint: Buffer.from('f'), durable: false };
    await claimBatch(db, { leaseMs, ttlMs: leaseMs, tombstoneMs: leaseMs }, [wanted]);
    return ours;
  };
  return { url, db, sql: testSql(t, url), clock, keeper, claim };
}

test('a round renews what has been held long enough and lets the young alone', async (t) => {
  const { sql, clock, keeper, claim } = await bundle(t);
  const leases = async () =>
    Object.fromEntries(
      (await sql`select key, lease_until::text as until from idem`).map((row) => [row.key, row.until]),
    );
  keeper.hold(await claim('old'));
  clock.ms = leaseMs / 2;
  keeper.hold(await claim('young'));
  const before = await leases();
  await keeper.renewOnce();
  const after = await leases();
  assert.notEqual(after.old, before.old);
  assert.equal(after.young, before.young);
});

test('a lost claim aborts its own work and no other, and one that has ended is not aborted', async (t) => {
  const { sql, clock, keeper, claim } = await bundle(t);
  const [kept, lost, ended] = [await claim('kept'), await claim('lost'), await claim('ended')].map((c) =>
    keeper.hold(c),
  );
  ended?.end();
  clock.ms = leaseMs;
  await sql`update idem set fencing_token = gen_random_uuid() where key in ('lost', 'ended')`;
  await keeper.renewOnce();
  assert.equal(kept?.signal.aborted, false);
  assert.equal(lost?.signal.aborted, true);
  assert.ok(lost?.signal.reason instanceof FenceLost);
  assert.equal(ended?.signal.aborted, false);
  assert.equal(keeper.count(), 2);
});

test('a row that is gone counts as lost', async (t) => {
  const { sql, clock, keeper, claim } = await bundle(t);
  const held = keeper.hold(await claim('k'));
  clock.ms = leaseMs;
  await sql`delete from idem`;
  await keeper.renewOnce();
  assert.ok(held.signal.reason instanceof FenceLost);
});

test('releasing all aborts the work with the reason and frees the keys at once', async (t) => {
  const { sql, keeper, claim } = await bundle(t);
  const held = [await claim('a'), await claim('b')].map((c) => keeper.hold(c));
  const reason = new Error('the server is stopping');
  await keeper.releaseAll(reason);
  for (const { signal } of held) assert.equal(signal.reason, reason);
  assert.equal((await sql`select 1 from idem where lease_until <= now()`).length, 2);
});

test('a renewal that fails aborts nothing: the lease may still be ours', async (t) => {
  const { db, clock, keeper, claim } = await bundle(t);
  const held = keeper.hold(await claim('k'));
  clock.ms = leaseMs;
  await db.close(0);
  await assert.rejects(keeper.renewOnce());
  assert.equal(held.signal.aborted, false);
});

test('a claim whose row is out of reach is given back as soon as it is not, and one that is done is let alone', async (t) => {
  const { url, sql, keeper, claim } = await bundle(t);
  const [locked, done] = [await claim('locked'), await claim('done')];
  await sql`update idem set state = 'done', status = 201 where key = 'done'`;
  const before = await sql`select * from idem where key = 'done'`;
  const held = await holdTransaction(t, url, (s) => s`select 1 from idem for update`);
  const lease = keeper.hold(locked);
  await keeper.giveBack(locked);
  await keeper.giveBack(done);
  lease.end();
  assert.equal((await sql`select 1 from idem where key = 'locked' and lease_until <= now()`).length, 0);
  await held.release();
  await until(async () => (await sql`select 1 from idem where key = 'locked' and lease_until <= now()`).length === 1);
  assert.deepEqual(await sql`select * from idem where key = 'done'`, before);
});

test('a claim that cannot be given back while Postgres is away is given back when it returns', async (t) => {
  const { db, sql, claim } = await bundle(t);
  let failures = 3;
  const flaky: Database = {
    ...db,
    query: (build) => (failures-- > 0 ? Promise.reject(new Error('away')) : db.query(build)),
  };
  const keeper = createLeaseKeeper(flaky, leaseMs, () => {});
  atEnd(t, () => keeper.stop());
  await keeper.giveBack(await claim('k'));
  await until(async () => (await sql`select 1 from idem where lease_until <= now()`).length === 1);
  assert.ok(failures < 0);
});
