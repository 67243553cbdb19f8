import { keyTable } from '../db/key-table.ts';
import type { Queries } from '../db/pool.ts';
import type { IdempotencySettings } from './claims.ts';

/** What one batch did. */
export type SweepCounts = { readonly expired: number; readonly deleted: number };

/** Rows a batch touches at most: short enough that nobody notices its locks. */
const batchRows = 1_000;

/**
 * One bounded batch: answers past their retention lose their body, tombstones past theirs are deleted. Oldest first;
 * what a transaction holds or an owner still works on is passed over. Several processes may sweep at once.
 */
export async function sweepOnce(
  db: Queries,
  settings: Pick<IdempotencySettings, 'tombstoneMs'>,
  limit: number = batchRows,
): Promise<SweepCounts> {
  const rows = await db.query(
    (sql) => sql<{ expired: number; deleted: number }[]>`
      with due as (
        select i.tenant, i.key, i.fencing_token,
          i.expires_at + ${settings.tombstoneMs}::float8 * interval '1 millisecond' <= now() as gone
        from ${keyTable(sql, db, 'idem')} i
        where i.sweep_at <= now() and not (i.state = 'in_progress' and i.lease_until > now())
        order by i.sweep_at limit ${limit}
        for update skip locked
      ), deleted as (
        delete from ${keyTable(sql, db, 'idem')} using due
        where due.gone and idem.tenant = due.tenant and idem.key = due.key returning 1
      ), expired as (
        update ${keyTable(sql, db, 'idem')} set state = 'expired', body = null, headers = null,
          sweep_at = idem.expires_at + ${settings.tombstoneMs}::float8 * interval '1 millisecond'
        from due
        where not due.gone and idem.tenant = due.tenant and idem.key = due.key returning 1
      )
      select (select count(*)::int from expired) as expired, (select count(*)::int from deleted) as deleted`,
  );
  return rows[0] ?? { expired: 0, deleted: 0 };
}
