import type postgres from 'postgres';
import { formatUuidV7, idRandomBytes } from '../protocol/uuid.ts';
import { random } from '../random.ts';

/** What holds or spends credits; `id` is unique among the tenant's sources of that type. */
export type Source = { readonly tenant: string; readonly type: 'job' | 'rewrite'; readonly id: string };

/** The random part of ledger ids made in one statement; sorted, so that entries of one millisecond keep their order. */
export function entryTails(count: number): string[] {
  return Array.from({ length: count }, () => formatUuidV7(0, random(idRandomBytes)).slice(12)).sort();
}

/** A ledger id as SQL: a UUIDv7 of the database's clock, so that ids sort as `created_at` does. */
export function entryId(sql: postgres.Sql, tail: string) {
  return sql`(lpad(to_hex(floor(extract(epoch from now()) * 1000)::bigint), 12, '0') || ${tail}::text)::uuid`;
}

/** `created_at` as SQL: the milliseconds that are in the id. */
export function entryTime(sql: postgres.Sql) {
  return sql`date_trunc('milliseconds', now())`;
}
