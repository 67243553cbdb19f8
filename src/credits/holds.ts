import type postgres from 'postgres';
import type { Database } from '../db/pool.ts';
import { entryId, entryTails, entryTime, type Source } from './entry.ts';

/*
 * The life of a hold (tables holds, ledger, balances):
 *
 *          place                     settle (used > 0)
 *  (none) ───────► held ─────────────────────────────► released and charged
 *                   │
 *                   └──► released: nothing was used, or its owner is dead
 *
 * The row in `holds` is there while it is open: whoever deletes it writes the release and the charge in the same statement,
 * so there is one of each however many try. A balance changes with its ledger entries, in one statement, and never waits
 * for a model.
 */

/** A hold to place. */
export type Hold = {
  readonly source: Source;
  readonly amountMicros: number;
  /** The key of the request that holds, and how long its owner can live: a rewrite's. */
  readonly owner?: { readonly requestKey: string; readonly forMs: number };
};

/**
 * Takes the amount off the tenant's balance if it covers it. False: it does not, and nothing was written.
 * The balance is the version: of parallel holds each sees what the one before it left.
 */
export async function placeHold(sql: postgres.Sql, hold: Hold): Promise<boolean> {
  const { source, amountMicros } = hold;
  // Where nothing costs anything a tenant needs no credits, but its books are kept all the same.
  if (amountMicros === 0) {
    await sql`insert into balances (tenant, balance_micros, held_micros) values (${source.tenant}, 0, 0)
      on conflict do nothing`;
  }
  return (await holding(sql, hold)).length === 1;
}

/** The same as one autocommitted statement: the tenant's balance is locked for as short as can be. */
export async function placeHoldAlone(db: Database, hold: Hold): Promise<boolean> {
  if (hold.amountMicros === 0) return await db.transaction((tx) => placeHold(tx.sql, hold));
  return (await db.query((sql) => holding(sql, hold))).length === 1;
}

function holding(sql: postgres.Sql, { source, amountMicros, owner }: Hold) {
  const [tail = ''] = entryTails(1);
  return sql<{ held: number }[]>`
    with held as (
      update balances set balance_micros = balance_micros - ${amountMicros}::bigint,
        held_micros = held_micros + ${amountMicros}::bigint
      where tenant = ${source.tenant} and balance_micros >= ${amountMicros}::bigint
      returning 1 as held
    ), entry as (
      insert into ledger (tenant, id, kind, amount_micros, source_type, source_id, created_at)
      select ${source.tenant}, ${entryId(sql, tail)}, 'hold', -${amountMicros}::bigint, ${source.type}, ${source.id},
        ${entryTime(sql)}
      from held
    ), opened as (
      insert into holds (tenant, source_type, source_id, amount_micros, request_key, expires_at)
      select ${source.tenant}, ${source.type}, ${source.id}, ${amountMicros}::bigint, ${owner?.requestKey ?? null}::text,
        clock_timestamp() + ${owner?.forMs ?? null}::float8 * interval '1 millisecond'
      from held
    )
    select held from held`;
}

/** What was used. */
export type Use = {
  readonly chargeMicros: number;
  /** Calls that were sent and whose outcome nobody knows. */
  readonly unknownAttempts: number;
};

/**
 * Ends a hold: releases the whole of it and charges what was used, never more than it. Answers the charge; undefined: the
 * hold has already been ended, and nothing was written.
 */
export async function settle(sql: postgres.Sql, source: Source, use: Use): Promise<number | undefined> {
  const rows = await settlement(sql, source, use);
  return rows[0]?.charge;
}

/** One statement, so that it can run autocommitted as well as inside a transaction. */
function settlement(sql: postgres.Sql, source: Source, use: Use, condition = sql``) {
  const [releaseTail = '', chargeTail = ''] = entryTails(2);
  const of = sql`${source.type}, ${source.id}`;
  return sql<{ charge: number }[]>`
    with freed as (
      delete from holds
      where tenant = ${source.tenant} and source_type = ${source.type} and source_id = ${source.id} ${condition}
      returning amount_micros as held, least(amount_micros, ${use.chargeMicros}::bigint) as charge
    ), released as (
      insert into ledger (tenant, id, kind, amount_micros, source_type, source_id, unknown_attempts, created_at)
      select ${source.tenant}, ${entryId(sql, releaseTail)}, 'release', held, ${of}, ${use.unknownAttempts}::integer,
        ${entryTime(sql)}
      from freed
    ), charged as (
      insert into ledger (tenant, id, kind, amount_micros, source_type, source_id, created_at)
      select ${source.tenant}, ${entryId(sql, chargeTail)}, 'charge', -charge, ${of}, ${entryTime(sql)}
      from freed where charge > 0
    ), balance as (
      update balances set balance_micros = balance_micros + held - charge, held_micros = held_micros - held
      from freed where tenant = ${source.tenant}
    )
    select charge from freed`;
}

/**
 * Releases what earlier owners of a request's key have left held. They are dead or fenced off: they can't commit any more.
 * One statement a hold: two holds in one transaction could deadlock with somebody who settles the second.
 */
export async function releaseHoldsOf(db: Database, tenant: string, requestKey: string): Promise<void> {
  const left = await db.query(
    (sql) => sql<{ source_type: Source['type']; source_id: string }[]>`
      select source_type, source_id from holds where tenant = ${tenant} and request_key = ${requestKey}`,
  );
  for (const { source_type, source_id } of left) {
    await db.query((sql) => settlement(sql, { tenant, type: source_type, id: source_id }, deadOwner));
  }
}

/** Nobody can say how far the owner's call got. */
const deadOwner: Use = { chargeMicros: 0, unknownAttempts: 1 };

/** Holds a batch releases at most. */
const batchRows = 100;

/** One bounded batch: releases holds whose owners must be dead by now, each in a statement of its own. */
export async function releaseExpiredOnce(db: Database, limit: number = batchRows): Promise<{ released: number }> {
  const due = await db.query(
    (sql) => sql<{ tenant: string; source_type: Source['type']; source_id: string }[]>`
      select tenant, source_type, source_id from holds where expires_at <= now() order by expires_at limit ${limit}`,
  );
  let released = 0;
  for (const hold of due) {
    const source: Source = { tenant: hold.tenant, type: hold.source_type, id: hold.source_id };
    const rows = await db.query((sql) => settlement(sql, source, deadOwner, sql`and expires_at <= now()`));
    released += rows.length;
  }
  return { released };
}
