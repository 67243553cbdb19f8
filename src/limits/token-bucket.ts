import { keyTable } from '../db/key-table.ts';
import type { Queries } from '../db/pool.ts';
import { problem } from '../protocol/errors.ts';

/** A budget that refills steadily: `perMinute` requests a minute, `burst` at once. */
export type BucketSettings = { readonly perMinute: number; readonly burst: number };

/**
 * Takes one request off the tenant's bucket or throws 429 `rate_limited` with the time until there is one again.
 * One statement, by the database's clock, so all processes share one budget. A bucket need not survive a crash of
 * Postgres: it is not flushed.
 */
export async function takeToken(db: Queries, settings: BucketSettings, tenant: string): Promise<void> {
  const { burst } = settings;
  const perSecond = settings.perMinute / 60;
  const rows = await db.query(
    (sql) => sql<{ taken: boolean; wait_ms: number | null }[]>`
      with settings as materialized (select set_config('synchronous_commit', 'off', true)),
      taken as (
        insert into ${keyTable(sql, db, 'buckets')} as b (tenant, tokens, refilled_at)
        select ${tenant}, ${burst}::float8 - 1, clock_timestamp() from settings
        on conflict (tenant) do update set
          tokens = least(${burst}::float8,
            b.tokens + ${perSecond}::float8 * greatest(0, extract(epoch from excluded.refilled_at - b.refilled_at)::float8)) - 1,
          refilled_at = greatest(b.refilled_at, excluded.refilled_at)
        where least(${burst}::float8,
            b.tokens + ${perSecond}::float8 * greatest(0, extract(epoch from excluded.refilled_at - b.refilled_at)::float8)) >= 1
        returning 1
      )
      select exists (select 1 from taken) as taken,
        (select 1000 * ((1 - b.tokens) / ${perSecond}::float8 - extract(epoch from clock_timestamp() - b.refilled_at)::float8)
          from ${keyTable(sql, db, 'buckets')} b where b.tenant = ${tenant}) as wait_ms`,
  );
  const row = rows[0];
  if (row?.taken !== true) throw problem('rate_limited', { retryAfterMs: Math.max(1, row?.wait_ms ?? 1_000) });
}
