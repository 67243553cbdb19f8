import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { type Database, DatabaseUnavailable, openDatabase } from '../../src/db/pool.ts';
import { complete, type StoredAnswer } from '../../src/idempotency/claims.ts';
import { createKeyed, type KeyedRequest, type Work } from '../../src/idempotency/keyed.ts';
import { problem } from '../../src/protocol/errors.ts';
import { atEnd } from '../helpers/cleanup.ts';
import { freshDatabase } from '../helpers/server.ts';
import { testSql, until } from '../helpers/sql.ts';

const settings = { leaseMs: 60_000, ttlMs: 3_600_000, tombstoneMs: 3_600_000 };
const answer: StoredAnswer = { status: 201, headers: {}, body: Buffer.from('{}') };

function request(key = 'k'): KeyedRequest {
  // A recipe the code knows: the first byte names it.
  const fingerprint = Buffer.concat([Buffer.from([1]), Buffer.alloc(80)]);
  return { tenant: 'acme', key, fingerprint, durable: false, waitMs: 0, clientGone: new AbortController().signal };
}

/** A protocol on a connection that may lose the answer of a statement, or never send it. */
async function bundle(t: TestContext) {
  const url = await freshDatabase(t);
  const db = openDatabase({ url, max: 1, prepare: true, queryTimeoutMs: 5_000 });
  atEnd(t, () => db.close(1_000));
  const line = { fault: undefined as { after: number; sent: boolean } | undefined };
  const faulty: Database = {
    ...db,
    async query(build) {
      const { fault } = line;
      if (fault === undefined || fault.after-- > 0) return await db.query(build);
      line.fault = undefined;
      if (fault.sent) await db.query(build);
      throw new DatabaseUnavailable(fault.sent ? 'lost' : 'connect', { sent: fault.sent, commitUnknown: fault.sent });
    },
  };
  const keyed = createKeyed(faulty, settings, { takenOver() {}, fenced() {}, error() {} });
  atEnd(t, () => keyed.leases.stop());
  const work: Work = async (claim) => {
    if (!(await db.transaction((tx) => complete(tx.sql, claim, answer)))) throw new Error('fenced');
    return answer;
  };
  const sql = testSql(t, url);
  const isFree = async () =>
    (await sql`select 1 from idem where state = 'in_progress' and lease_until > now()`).length === 0;
  return { db, sql, keyed, work, line, isFree };
}

test('when the answer to the claim is lost, nothing runs and the retry does at once', async (t) => {
  const { keyed, work, line, isFree } = await bundle(t);
  line.fault = { after: 0, sent: true };
  await assert.rejects(
    keyed.run(request(), () => assert.fail('ran')),
    DatabaseUnavailable,
  );
  await until(isFree);
  assert.equal((await keyed.run(request(), work)).outcome, 'taken_over');
});

test('when the answer to a takeover is lost, nothing runs and the retry does at once', async (t) => {
  const { keyed, work, line, isFree } = await bundle(t);
  await assert.rejects(keyed.run(request(), () => Promise.reject(new Error('fails'))));
  line.fault = { after: 1, sent: true };
  await assert.rejects(
    keyed.run(request(), () => assert.fail('ran')),
    DatabaseUnavailable,
  );
  await until(isFree);
  assert.equal((await keyed.run(request(), work)).outcome, 'taken_over');
});

test('when a refusal can’t give its key back, the answer is 503 and the key is free soon', async (t) => {
  const { keyed, work, line, isFree } = await bundle(t);
  for (const sent of [false, true]) {
    const key = `sent-${sent}`;
    line.fault = { after: 1, sent };
    await assert.rejects(
      keyed.run(request(key), () => Promise.reject(problem('insufficient_credits'))),
      DatabaseUnavailable,
    );
    await until(isFree);
    assert.equal((await keyed.run(request(key), work)).outcome, sent ? 'first' : 'taken_over');
  }
});

test('when the answer to the COMMIT is lost, the retry finds what became of it: the replay, or the first run', async (t) => {
  const { db, keyed, work } = await bundle(t);
  const lost = new DatabaseUnavailable('lost', { sent: true, commitUnknown: true });
  const committed: Work = async (claim) => {
    await db.transaction((tx) => complete(tx.sql, claim, answer));
    throw lost;
  };
  await assert.rejects(keyed.run(request('committed'), committed), lost);
  assert.equal((await keyed.run(request('committed'), work)).outcome, 'replayed');
  await assert.rejects(
    keyed.run(request('not'), () => Promise.reject(lost)),
    lost,
  );
  assert.equal((await keyed.run(request('not'), work)).outcome, 'taken_over');
});

test('while Postgres is away a claim that was never sent costs no statement of its own', async (t) => {
  const { db, keyed, line } = await bundle(t);
  line.fault = { after: 0, sent: false };
  const before = db.stats().served;
  await assert.rejects(
    keyed.run(request(), () => assert.fail('ran')),
    DatabaseUnavailable,
  );
  await new Promise(setImmediate);
  assert.equal(db.stats().served, before);
});

test('a claim that somebody else’s owner has taken over meanwhile is not refused in its name', async (t) => {
  const { sql, keyed } = await bundle(t);
  const end = await keyed.run(request(), async () => {
    await sql`update idem set fencing_token = ${randomUUID()}, attempt = 2`;
    throw problem('precondition_failed');
  });
  assert.equal(end.outcome, 'in_progress');
});

test('the end of the first wakes those who wait for it in this process, without asking Postgres', {
  timeout: 15_000,
}, async (t) => {
  const { keyed, work } = await bundle(t);
  // The connection is open: the driver needs a timer for that.
  await keyed.run(request('other'), work);
  // No timer fires: neither the question after parked keys nor the end of the wait.
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const first = keyed.run(request(), async (claim, owned, signal) => {
    await ended;
    return await work(claim, owned, signal);
  });
  const waiting = keyed.run({ ...request(), waitMs: 30_000 }, () => assert.fail('ran'));
  while (keyed.waitingRoom.count() === 0) await new Promise(setImmediate);
  end();
  assert.equal((await first).outcome, 'first');
  const replay = await waiting;
  assert.deepEqual([replay.outcome, replay.parked], ['replayed', true]);
  t.mock.timers.reset();
});
