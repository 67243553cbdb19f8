import type postgres from 'postgres';

/** What is in the database when everything has come to rest: the other half of what the checker knows. */
export type Snapshot = {
  readonly keys: readonly KeyState[];
  readonly orders: readonly { readonly tenant: string; readonly id: string; readonly item: string }[];
  readonly docs: readonly DocState[];
  readonly jobs: readonly JobState[];
  readonly ledger: readonly LedgerState[];
  readonly balances: readonly { readonly tenant: string; readonly balance: number; readonly held: number }[];
  readonly holds: readonly {
    readonly tenant: string;
    readonly type: string;
    readonly id: string;
    readonly amount: number;
  }[];
};

export type KeyState = {
  readonly tenant: string;
  readonly key: string;
  readonly state: 'in_progress' | 'done' | 'expired';
  /** Somebody claims to be working on it still. */
  readonly isLeased: boolean;
  /** The sweep should have been here. */
  readonly isOverdue: boolean;
  readonly attempt: number;
  readonly status: number | null;
  readonly body: string | null;
};

export type DocState = {
  readonly tenant: string;
  readonly id: string;
  readonly body: string;
  readonly version: number;
  readonly isDeleted: boolean;
};

export type JobState = {
  readonly tenant: string;
  readonly id: string;
  readonly prompt: string;
  readonly status: string;
  readonly cost: number;
  /** Tokens in sum, times their price. */
  readonly used: number;
};

export type LedgerState = {
  readonly tenant: string;
  readonly kind: 'credit' | 'hold' | 'release' | 'charge';
  readonly type: 'credit' | 'job' | 'rewrite';
  readonly id: string;
  readonly amount: number;
};

/** Reads it, in one transaction. */
export async function readSnapshot(sql: postgres.Sql): Promise<Snapshot> {
  return await sql.begin('isolation level repeatable read', async (tx) => {
    const keys = await tx<KeyState[]>`
      select tenant, key, state, state = 'in_progress' and lease_until > clock_timestamp() as "isLeased",
        sweep_at < clock_timestamp() - interval '5 seconds' as "isOverdue",
        attempt, status::int, convert_from(body, 'UTF8') as body
      from idem order by tenant, key`;
    const orders = await tx<{ tenant: string; id: string; item: string }[]>`
      select tenant, 'ord_' || replace(id::text, '-', '') as id, item from orders`;
    const docs = await tx<DocState[]>`
      select tenant, id, body, version, deleted_at is not null as "isDeleted" from docs`;
    const jobs = await tx<JobState[]>`
      select tenant, 'job_' || replace(id::text, '-', '') as id, prompt, status, cost_micros::float8 as cost,
        ((prompt_tokens + completion_tokens) * price_micros)::float8 as used from jobs`;
    const ledger = await tx<LedgerState[]>`
      select tenant, kind, source_type as type, source_id as id, amount_micros::float8 as amount from ledger`;
    const balances = await tx<{ tenant: string; balance: number; held: number }[]>`
      select tenant, balance_micros::float8 as balance, held_micros::float8 as held from balances`;
    const holds = await tx<{ tenant: string; type: string; id: string; amount: number }[]>`
      select tenant, source_type as type, source_id as id, amount_micros::float8 as amount from holds`;
    return { keys, orders, docs, jobs, ledger, balances, holds };
  });
}
