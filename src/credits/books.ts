import type postgres from 'postgres';
import type { Database } from '../db/pool.ts';
import { sqlstateOf, UNIQUE_VIOLATION } from '../db/sqlstate.ts';
import { entryId, entryTails, entryTime } from './entry.ts';

/** An entry as it is kept; `id` is a UUIDv7 without its prefix. Amounts that leave the balance are negative. */
export type LedgerRow = {
  readonly id: string;
  readonly kind: 'credit' | 'hold' | 'release' | 'charge';
  readonly amount_micros: number;
  readonly source_type: 'credit' | 'job' | 'rewrite';
  readonly source_id: string;
  readonly unknown_attempts: number;
  readonly created_at: Date;
};

/** What a tenant has (`balance_micros`, the sum of its ledger) and what of it is held. */
export type Balance = { readonly balance_micros: number; readonly held_micros: number };

/** The most a tenant can have, held credits included: what JSON carries exactly. */
export const maxBalanceMicros = Number.MAX_SAFE_INTEGER;

/**
 * Adds credits under a source id that counts once; answers the entry. None: it was counted already, or the balance would
 * exceed the most. Of two at the same moment with one id, one is a unique violation.
 */
export function addCredits(
  sql: postgres.Sql,
  tenant: string,
  credit: { readonly amountMicros: number; readonly sourceId: string },
) {
  const { amountMicros, sourceId } = credit;
  const [tail = ''] = entryTails(1);
  return sql<LedgerRow[]>`
    with added as (
      insert into balances as b (tenant, balance_micros, held_micros)
      select ${tenant}, ${amountMicros}::bigint, 0
      where not exists (
        select 1 from ledger where tenant = ${tenant} and source_type = 'credit' and source_id = ${sourceId})
      on conflict (tenant) do update set balance_micros = b.balance_micros + excluded.balance_micros
        where b.balance_micros + b.held_micros <= ${maxBalanceMicros}::bigint - excluded.balance_micros
      returning 1
    )
    insert into ledger (tenant, id, kind, amount_micros, source_type, source_id, created_at)
    select ${tenant}, ${entryId(sql, tail)}, 'credit', ${amountMicros}::bigint, 'credit', ${sourceId}, ${entryTime(sql)}
    from added
    returning id, kind, amount_micros, source_type, source_id, unknown_attempts, created_at`;
}

/** Up to `limit` entries of the tenant before `beforeId`, newest first, with the balances of the same moment. */
export async function readLedger(
  db: Database,
  tenant: string,
  beforeId: string | undefined,
  limit: number,
): Promise<{ readonly balance: Balance; readonly rows: readonly LedgerRow[] }> {
  const rows = await db.query(
    (sql) => sql<((LedgerRow | { id: null }) & Balance)[]>`
      with page as (
        select id, kind, amount_micros, source_type, source_id, unknown_attempts, created_at from ledger
        where tenant = ${tenant} ${beforeId === undefined ? sql`` : sql`and id < ${beforeId}`}
        order by id desc limit ${limit}
      )
      select coalesce(b.balance_micros, 0) as balance_micros, coalesce(b.held_micros, 0) as held_micros, page.*
      from (values (1)) as always(there)
      left join balances b on b.tenant = ${tenant}
      left join page on true
      order by page.id desc`,
  );
  const balance_micros = rows[0]?.balance_micros ?? 0;
  const held_micros = rows[0]?.held_micros ?? 0;
  return { balance: { balance_micros, held_micros }, rows: rows.filter((row) => row.id !== null) as LedgerRow[] };
}

/** What the tenants of the first screen have to spend on the embedded database, in micros. */
export const firstCredits = { acme: 100_000_000, globex: 100_000_000 } as const;

/** Gives tenants their first credits, once: later starts, and others at the same moment, find them counted. */
export async function seedCredits(db: Database, micros: Readonly<Record<string, number>>): Promise<void> {
  for (const [tenant, amountMicros] of Object.entries(micros)) {
    try {
      await db.query((sql) => addCredits(sql, tenant, { amountMicros, sourceId: 'seed' }));
    } catch (error) {
      if (sqlstateOf(error) !== UNIQUE_VIOLATION) throw error;
    }
  }
}
