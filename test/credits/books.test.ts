import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { addCredits, readLedger, seedCredits } from '../../src/credits/books.ts';
import type { Source } from '../../src/credits/entry.ts';
import { placeHold, releaseExpiredOnce, releaseHoldsOf, settle } from '../../src/credits/holds.ts';
import { type Database, openDatabase } from '../../src/db/pool.ts';
import { CHECK_VIOLATION, sqlstateOf, UNIQUE_VIOLATION } from '../../src/db/sqlstate.ts';
import { atEnd } from '../helpers/cleanup.ts';
import { freshDatabase } from '../helpers/server.ts';

type Context = Parameters<typeof freshDatabase>[0];

async function openBooks(t: Context): Promise<Database> {
  const url = await freshDatabase(t);
  const db = openDatabase({ url, max: 12, prepare: true, queryTimeoutMs: 5_000 });
  atEnd(t, () => db.close(0));
  return db;
}

const job = (id: string, tenant = 'acme'): Source => ({ tenant, type: 'job', id });
const hold = (db: Database, source: Source, amountMicros: number) =>
  db.transaction((tx) => placeHold(tx.sql, { source, amountMicros }));
const end = (db: Database, source: Source, chargeMicros: number) =>
  db.transaction((tx) => settle(tx.sql, source, { chargeMicros, unknownAttempts: 0 }));

test('a hold is taken off the balance, and its end gives it back and takes what was used', async (t) => {
  const db = await openBooks(t);
  await seedCredits(db, { acme: 1_000 });
  assert.equal(await hold(db, job('j1'), 600), true);
  assert.deepEqual((await readLedger(db, 'acme', undefined, 10)).balance, { balance_micros: 400, held_micros: 600 });
  assert.equal(await end(db, job('j1'), 250), 250);
  const { balance, rows } = await readLedger(db, 'acme', undefined, 10);
  assert.deepEqual(balance, { balance_micros: 750, held_micros: 0 });
  assert.deepEqual(
    rows.map((row) => [row.kind, row.amount_micros, row.source_type, row.source_id]),
    [
      ['charge', -250, 'job', 'j1'],
      ['release', 600, 'job', 'j1'],
      ['hold', -600, 'job', 'j1'],
      ['credit', 1_000, 'credit', 'seed'],
    ],
  );
});

test('a charge is never more than its hold, and nothing used is no charge', async (t) => {
  const db = await openBooks(t);
  await seedCredits(db, { acme: 1_000 });
  await hold(db, job('dear'), 300);
  await hold(db, job('free'), 300);
  assert.equal(await end(db, job('dear'), 5_000), 300);
  assert.equal(await end(db, job('free'), 0), 0);
  const { balance, rows } = await readLedger(db, 'acme', undefined, 10);
  assert.equal(balance.balance_micros, 700);
  assert.equal(rows.filter((row) => row.kind === 'charge').length, 1);
});

test('ten settlements of one hold at once write one release and one charge', async (t) => {
  const db = await openBooks(t);
  await seedCredits(db, { acme: 1_000 });
  await hold(db, job('j1'), 500);
  const ends = await Promise.all(Array.from({ length: 10 }, () => end(db, job('j1'), 200)));
  assert.equal(ends.filter((charge) => charge === 200).length, 1);
  assert.equal(ends.filter((charge) => charge === undefined).length, 9);
  assert.equal((await readLedger(db, 'acme', undefined, 10)).balance.balance_micros, 800);
});

test('a second charge, release or hold for one source is refused by the table itself', async (t) => {
  const db = await openBooks(t);
  await seedCredits(db, { acme: 1_000 });
  await hold(db, job('j1'), 500);
  await end(db, job('j1'), 200);
  await assert.rejects(hold(db, job('j1'), 100), (error) => sqlstateOf(error) === UNIQUE_VIOLATION);
  for (const kind of ['charge', 'release']) {
    const amount = kind === 'charge' ? -1 : 1;
    const again = db.query(
      (sql) => sql`insert into ledger (tenant, id, kind, amount_micros, source_type, source_id, created_at)
        values ('acme', gen_random_uuid(), ${kind}, ${amount}, 'job', 'j1', now())`,
    );
    await assert.rejects(again, (error) => sqlstateOf(error) === UNIQUE_VIOLATION);
  }
});

test('the table refuses a negative balance whoever writes it', async (t) => {
  const db = await openBooks(t);
  await seedCredits(db, { acme: 10 });
  const overdraw = db.query((sql) => sql`update balances set balance_micros = balance_micros - 11`);
  await assert.rejects(overdraw, (error) => sqlstateOf(error) === CHECK_VIOLATION);
});

test('first credits are given once, however many processes start at the same moment', async (t) => {
  const db = await openBooks(t);
  await Promise.all(Array.from({ length: 8 }, () => seedCredits(db, { acme: 500, globex: 700 })));
  await seedCredits(db, { acme: 500 });
  assert.equal((await readLedger(db, 'acme', undefined, 10)).balance.balance_micros, 500);
  assert.equal((await readLedger(db, 'globex', undefined, 10)).rows.length, 1);
});

test('where nothing costs anything a tenant without credits may hold nothing, and only that', async (t) => {
  const db = await openBooks(t);
  assert.equal(await hold(db, job('free'), 0), true);
  assert.equal(await hold(db, job('dear'), 1), false);
  assert.equal(await end(db, job('free'), 0), 0);
});

test('a hold whose owner must be dead is released by the sweep, one that may live is not', async (t) => {
  const db = await openBooks(t);
  await seedCredits(db, { acme: 1_000 });
  const place = (id: string, forMs: number) =>
    db.transaction((tx) =>
      placeHold(tx.sql, {
        source: { tenant: 'acme', type: 'rewrite', id },
        amountMicros: 300,
        owner: { requestKey: id, forMs },
      }),
    );
  await place('dead', 0);
  await place('alive', 60_000);
  await hold(db, job('j1'), 100);
  assert.deepEqual(await releaseExpiredOnce(db), { released: 1 });
  assert.deepEqual(await releaseExpiredOnce(db), { released: 0 });
  const { balance, rows } = await readLedger(db, 'acme', undefined, 10);
  assert.deepEqual(balance, { balance_micros: 600, held_micros: 400 });
  // Its call may have been sent: nobody knows, and the ledger says so.
  const release = rows.find((row) => row.kind === 'release');
  assert.deepEqual([release?.source_id, release?.unknown_attempts], ['dead', 1]);
});

test('a later owner of a key releases what an earlier one left held', async (t) => {
  const db = await openBooks(t);
  await seedCredits(db, { acme: 500, globex: 500 });
  for (const tenant of ['acme', 'globex']) {
    await db.transaction((tx) =>
      placeHold(tx.sql, {
        source: { tenant, type: 'rewrite', id: 'r1' },
        amountMicros: 500,
        owner: { requestKey: 'k', forMs: 60_000 },
      }),
    );
  }
  await releaseHoldsOf(db, 'acme', 'k');
  assert.equal((await readLedger(db, 'acme', undefined, 10)).balance.balance_micros, 500);
  assert.equal((await readLedger(db, 'globex', undefined, 10)).balance.balance_micros, 0);
});

type Act =
  | { kind: 'credit'; tenant: string; amount: number }
  | { kind: 'hold'; tenant: string; amount: number }
  | { kind: 'settle'; tenant: string; of: number; used: number };

const tenant = fc.constantFrom('acme', 'globex');
const act: fc.Arbitrary<Act> = fc.oneof(
  fc.record({ kind: fc.constant('credit' as const), tenant, amount: fc.integer({ min: 1, max: 1_000 }) }),
  fc.record({ kind: fc.constant('hold' as const), tenant, amount: fc.integer({ min: 0, max: 800 }) }),
  fc.record({ kind: fc.constant('settle' as const), tenant, of: fc.nat(), used: fc.integer({ min: 0, max: 1_000 }) }),
);

test('whatever happens, four at a time, the balance is the sum of the ledger and never negative, and held is what is open', async (t) => {
  const db = await openBooks(t);
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(act, { minLength: 1, maxLength: 24 }), async (acts) => {
      run += 1;
      const prefix = `run${run}`;
      const placed: Source[] = [];
      let next = 0;
      const perform = async (one: Act) => {
        const owner = `${prefix}-${one.tenant}`;
        if (one.kind === 'credit') {
          const sourceId = `${prefix}-${next++}`;
          await db.query((sql) => addCredits(sql, owner, { amountMicros: one.amount, sourceId }));
        } else if (one.kind === 'hold') {
          const source = job(`${prefix}-${next++}`, owner);
          if (await hold(db, source, one.amount)) placed.push(source);
        } else if (placed.length > 0) {
          await end(db, placed[one.of % placed.length] as Source, one.used);
        }
      };
      for (let i = 0; i < acts.length; i += 4) await Promise.all(acts.slice(i, i + 4).map(perform));
      for (const name of [`${prefix}-acme`, `${prefix}-globex`]) {
        const { balance, rows } = await readLedger(db, name, undefined, 1_000);
        const sum = rows.reduce((total, row) => total + row.amount_micros, 0);
        const released = new Set(rows.filter((row) => row.kind === 'release').map((row) => row.source_id));
        const open = rows.filter((row) => row.kind === 'hold' && !released.has(row.source_id));
        const held = open.reduce((total, row) => total - row.amount_micros, 0);
        assert.deepEqual(balance, { balance_micros: sum, held_micros: held });
        assert.ok(sum >= 0);
      }
    }),
    { numRuns: 60 },
  );
});
