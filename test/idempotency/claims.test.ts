import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { type Database, openDatabase } from '../../src/db/pool.ts';
import {
  abandon,
  type Claim,
  type ClaimRequest,
  claimBatch,
  complete,
  completeWith,
  lookUp,
  release,
  removeGone,
  renew,
  type StoredAnswer,
  stillRunning,
  takeOver,
} from '../../src/idempotency/claims.ts';
import { atEnd } from '../helpers/cleanup.ts';
import { freshDatabase } from '../helpers/server.ts';
import { testSql } from '../helpers/sql.ts';

const settings = { leaseMs: 60_000, ttlMs: 3_600_000, tombstoneMs: 3_600_000 };
const answer: StoredAnswer = { status: 201, headers: { Location: '/x' }, body: Buffer.from('{"a":1}') };

async function bundle(t: TestContext) {
  const url = await freshDatabase(t);
  const db = openDatabase({ url, max: 4, prepare: true, queryTimeoutMs: 5_000 });
  atEnd(t, () => db.close(1_000));
  return { url, db, sql: testSql(t, url) };
}

function request(key: string, tenant = 'acme'): ClaimRequest {
  return { tenant, key, fencingToken: randomUUID(), fingerprint: Buffer.from('f'), durable: false };
}

async function claimed(db: Database, wanted: ClaimRequest = request('k')): Promise<ClaimRequest> {
  const [outcome] = await claimBatch(db, settings, [wanted]);
  assert.equal(outcome?.kind, 'claimed');
  return wanted;
}

/** A claim whose owner is late: its lease has run out and somebody else has taken the key over. */
async function overtaken(db: Database): Promise<{ late: Claim; current: Claim }> {
  const late = await claimed(db);
  await release(db, [late]);
  const current = { ...late, fencingToken: randomUUID() };
  assert.notEqual(await takeOver(db, settings, current, late.fencingToken), undefined);
  return { late, current };
}

const tryComplete = (db: Database, claim: Claim) => db.transaction((tx) => complete(tx.sql, claim, answer));

test('a late owner cannot complete a claim that was taken over, and the new one can', async (t) => {
  const { db } = await bundle(t);
  const { late, current } = await overtaken(db);
  assert.equal(await tryComplete(db, late), false);
  assert.equal((await lookUp(db, settings, 'acme', 'k'))?.phase, 'in_progress');
  assert.equal(await tryComplete(db, current), true);
});

test('the one-statement form of a late owner leaves neither answer nor work behind', async (t) => {
  const { db, sql } = await bundle(t);
  const { late, current } = await overtaken(db);
  const work = (s: typeof sql) => s`
    insert into orders (tenant, id, cents, item, created_at)
    select 'acme', ${randomUUID()}::uuid, 1, 'x', now() from fence`;
  assert.equal(await completeWith(db, late, answer, work), false);
  assert.deepEqual([...(await sql`select 1 from orders`)], []);
  assert.equal(await completeWith(db, current, answer, work), true);
  assert.equal((await sql`select 1 from orders`).length, 1);
});

test('a late release does not free the claim of the new owner', async (t) => {
  const { db } = await bundle(t);
  const { late } = await overtaken(db);
  await release(db, [late]);
  assert.equal((await lookUp(db, settings, 'acme', 'k'))?.phase, 'in_progress');
});

test('a late abandon does not remove the row of the new owner', async (t) => {
  const { db } = await bundle(t);
  const { late, current } = await overtaken(db);
  assert.equal(await abandon(db, late), false);
  assert.equal((await lookUp(db, settings, 'acme', 'k'))?.fencingToken, current.fencingToken);
});

test('a late renewal is told that its claim is lost and prolongs nothing', async (t) => {
  const { db, sql } = await bundle(t);
  const { late, current } = await overtaken(db);
  const leaseOf = async () => (await sql`select lease_until::text as until from idem`)[0]?.until;
  const before = await leaseOf();
  assert.deepEqual(await renew(db, 3_600_000, [late]), new Set());
  assert.equal(await leaseOf(), before);
  assert.deepEqual(await renew(db, 3_600_000, [late, current]), new Set([current.fencingToken]));
  assert.notEqual(await leaseOf(), before);
});

test('what is done stays done: it is not released, abandoned, taken over or completed again', async (t) => {
  const { db, sql } = await bundle(t);
  const claim = await claimed(db);
  assert.equal(await tryComplete(db, claim), true);
  await sql`update idem set lease_until = now() - interval '1 hour'`;
  await release(db, [claim]);
  assert.equal(await abandon(db, claim), false);
  assert.equal(await takeOver(db, settings, { ...claim, fencingToken: randomUUID() }, claim.fencingToken), undefined);
  assert.equal(await tryComplete(db, claim), false);
  const row = await lookUp(db, settings, 'acme', 'k');
  assert.equal(row?.phase, 'done');
  assert.equal(row?.fencingToken, claim.fencingToken);
});

test('of twenty that take a key over at once exactly one gets it, and the attempt rises by one', async (t) => {
  const { db } = await bundle(t);
  const first = await claimed(db);
  await release(db, [first]);
  const tries = await Promise.all(
    Array.from({ length: 20 }, () =>
      takeOver(db, settings, { ...first, fencingToken: randomUUID() }, first.fencingToken),
    ),
  );
  assert.deepEqual(
    tries.filter((owned) => owned !== undefined).map((owned) => owned.attempt),
    [2],
  );
});

test('a lease that still runs cannot be taken over, nor one whose owner has changed since the look', async (t) => {
  const { db } = await bundle(t);
  const first = await claimed(db);
  const other = { ...first, fencingToken: randomUUID() };
  assert.equal(await takeOver(db, settings, other, first.fencingToken), undefined);
  await release(db, [first]);
  assert.equal(await takeOver(db, settings, other, randomUUID()), undefined);
  assert.notEqual(await takeOver(db, settings, other, first.fencingToken), undefined);
});

test('an owner of a key that was abandoned and claimed again cannot complete its next life', async (t) => {
  const { db } = await bundle(t);
  const first = await claimed(db);
  assert.equal(await abandon(db, first), true);
  const second = await claimed(db);
  assert.equal(await tryComplete(db, first), false);
  assert.equal(await abandon(db, first), false);
  assert.equal(await tryComplete(db, second), true);
});

test('two requests for one key in one batch: one claims, the other is told to look again', async (t) => {
  const { db } = await bundle(t);
  const outcomes = await claimBatch(db, settings, [request('k'), request('k')]);
  assert.deepEqual(outcomes.map((outcome) => outcome.kind).sort(), ['claimed', 'lost']);
});

test('the outcomes of a batch come in the order of its requests, each of its own tenant and key', async (t) => {
  const { db } = await bundle(t);
  const held = [await claimed(db, request('m')), await claimed(db, request('m', 'globex'))];
  const outcomes = await claimBatch(db, settings, [
    request('z'),
    request('m'),
    request('a'),
    request('m', 'globex'),
    request('m', 'initech'),
  ]);
  assert.deepEqual(
    outcomes.map((outcome) => (outcome.kind === 'held' ? outcome.row.fencingToken : outcome.kind)),
    ['claimed', held[0]?.fencingToken, 'claimed', held[1]?.fencingToken, 'claimed'],
  );
});

test('batches over the same keys in opposite orders do not deadlock', async (t) => {
  const { db, sql } = await bundle(t);
  for (let round = 0; round < 10; round += 1) {
    const keys = Array.from({ length: 60 }, (_, i) => `r${round}-${i}`);
    const forth = keys.map((key) => request(key));
    const back = [...keys].reverse().map((key) => request(key));
    const outcomes = (await Promise.all([claimBatch(db, settings, forth), claimBatch(db, settings, back)])).flat();
    assert.equal(outcomes.filter((outcome) => outcome.kind === 'claimed').length, 60);
  }
  assert.equal((await sql`select 1 from idem`).length, 600);
});

test('stored bytes come back as they were: NUL, invalid UTF-8, an empty body and none', async (t) => {
  const { db } = await bundle(t);
  const bodies = [Buffer.from([0, 255, 0xc3, 0x28, 10]), Buffer.alloc(0), Buffer.alloc(200_000, 7), null];
  for (const [i, body] of bodies.entries()) {
    const claim = await claimed(db, request(`k${i}`));
    await db.transaction((tx) => complete(tx.sql, claim, { status: 200, headers: {}, body }));
    const stored = (await lookUp(db, settings, 'acme', `k${i}`))?.answer?.body;
    assert.deepEqual(stored === null ? null : Buffer.from(stored as Uint8Array), body);
  }
});

test('every statement about a key names its tenant: a row of another tenant with the same key and token is not touched', async (t) => {
  const { db, sql } = await bundle(t);
  const ours = await claimed(db);
  const theirs = await claimed(db, { ...ours, tenant: 'globex' });
  // Theirs may be taken over and is past its tombstone; a third one still runs.
  await sql`update idem set lease_until = now() - interval '1 hour', expires_at = now() - interval '1 year'`;
  await claimed(db, { ...ours, tenant: 'hooli' });
  const read = () => sql`select * from idem where tenant <> 'acme' order by tenant`;
  const before = await read();

  await renew(db, 1, [ours]);
  await release(db, [ours]);
  assert.equal((await takeOver(db, settings, ours, ours.fencingToken))?.attempt, 2);
  assert.deepEqual(await stillRunning(db, [{ tenant: 'initech', key: 'k' }]), new Set());
  assert.equal(await lookUp(db, settings, 'initech', 'k'), undefined);
  assert.equal(await tryComplete(db, ours), true);
  await removeGone(db, settings, 'acme', 'k');
  assert.equal(await abandon(db, await claimed(db, { ...ours, fencingToken: theirs.fencingToken })), true);
  assert.deepEqual([...(await read())], [...before]);
});

test('a row that is past its tombstone reads as free and is removed, one that is not stays', async (t) => {
  const { db, sql } = await bundle(t);
  const claim = await claimed(db);
  await tryComplete(db, claim);
  await removeGone(db, settings, 'acme', 'k');
  assert.equal((await lookUp(db, settings, 'acme', 'k'))?.phase, 'done');
  await sql`update idem set expires_at = now() - interval '1 minute'`;
  await removeGone(db, settings, 'acme', 'k');
  assert.equal((await lookUp(db, settings, 'acme', 'k'))?.phase, 'expired');
  await sql`update idem set expires_at = now() - interval '61 minutes'`;
  assert.equal(await lookUp(db, settings, 'acme', 'k'), undefined);
  assert.equal((await claimBatch(db, settings, [request('k')]))[0]?.kind, 'gone');
  await removeGone(db, settings, 'acme', 'k');
  await claimed(db);
});

test('a claim before a paid step is flushed as the database is told to, one for database work is not', async (t) => {
  const { url, sql } = await bundle(t);
  await sql.unsafe(`
    create table seen (key text, setting text);
    create function note_setting() returns trigger language plpgsql as $$
    begin insert into seen values (new.key, current_setting('synchronous_commit')); return null; end $$;
    create trigger note_setting after insert on idem for each row execute function note_setting();
    alter database ${new URL(url).pathname.slice(1)} set synchronous_commit = on;`);
  const flushing = openDatabase({ url, max: 1, prepare: true, queryTimeoutMs: 5_000 });
  atEnd(t, () => flushing.close(1_000));
  await claimBatch(flushing, settings, [request('cheap')]);
  await claimBatch(flushing, settings, [{ ...request('paid'), durable: true }]);
  await claimBatch(flushing, settings, [request('cheap again')]);
  const seen = await sql<{ key: string; setting: string }[]>`select key, setting from seen`;
  assert.deepEqual(
    seen.map((row) => `${row.key}: ${row.setting}`),
    ['cheap: off', 'paid: on', 'cheap again: off'],
  );
});
