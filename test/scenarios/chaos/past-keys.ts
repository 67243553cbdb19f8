import { setTimeout as sleep } from 'node:timers/promises';
import type postgres from 'postgres';

/** Whose they are. */
export const pastTenant = 'past';
/** Keys a round, and milliseconds between two rounds. */
const roundKeys = 40;
const pauseMs = 300;

/** Puts keys whose retention is over into the table again and again, so that there is always something to sweep. */
export async function agePastKeys(sql: postgres.Sql, stop: AbortSignal): Promise<void> {
  for (let round = 0; !stop.aborted; round += 1) {
    // Postgres is away now and then.
    await sql`
      insert into idem (tenant, key, fingerprint, state, fencing_token, attempt, lease_until, created_at, expires_at, sweep_at,
        status, headers, body)
      select ${pastTenant}, ${`r${round}-`} || n, '', 'done', gen_random_uuid(), 1, now() - interval '2 days',
        now() - interval '2 days', now() - interval '1 day', now() - interval '1 day', 200, '{}', 'past'
      from generate_series(1, ${roundKeys}) n`.catch(() => {});
    await sleep(pauseMs, undefined, { signal: stop }).catch(() => {});
  }
}
