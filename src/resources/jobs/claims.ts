import type postgres from 'postgres';
import { textArray } from '../../db/arrays.ts';
import type { Database } from '../../db/pool.ts';
import type { EventRow } from './event-data.ts';
import { eventsChannel, notify } from './signals.ts';
import { endJob, type LockedJob, lockJob, requeueJob } from './transitions.ts';
import { recordedUsage } from './usage.ts';

/** A job that a worker owns until somebody takes it away. */
export type JobClaim = { readonly tenant: string; readonly id: string; readonly fencingToken: string };

/** A claimed job with all that its run needs. */
export type ClaimedJob = JobClaim & {
  readonly prompt: string;
  readonly maxTokens: number;
  readonly tries: number;
  readonly maxAttempts: number;
  readonly lastSeq: number;
  readonly traceparent: string | null;
};

/**
 * Claims up to `limit` jobs that are due, the longest waiting first, and tells their streams; committed at once, so that
 * nothing is locked while the model is called. The attempt is counted here, before the call: should the worker die, it was
 * not forgotten.
 */
export async function claimJobs(db: Database, leaseMs: number, limit: number): Promise<ClaimedJob[]> {
  const rows = await db.query(
    (sql) => sql<RawClaim[]>`
      with due as (
        select tenant, id from jobs where status = 'queued' and run_at <= now()
        order by run_at limit ${limit} for update skip locked
      ), claimed as (
        update jobs set status = 'running', version = version + 1, attempts = attempts + 1, tries = tries + 1,
          fencing_token = gen_random_uuid(),
          lease_until = clock_timestamp() + ${leaseMs}::float8 * interval '1 millisecond',
          attempt_tokens = 0, last_seq = last_seq + case when attempts > 0 then 2 else 1 end, updated_at = clock_timestamp()
        from due where jobs.tenant = due.tenant and jobs.id = due.id and jobs.status = 'queued'
        returning jobs.*
      ), told as (
        insert into job_events (tenant, job_id, seq, event, data)
        select tenant, id, last_seq - case when attempts > 1 then 1 else 0 end, 'status',
          format('{"seq":%s,"status":"running"}', last_seq - case when attempts > 1 then 1 else 0 end)
        from claimed
        union all
        select tenant, id, last_seq, 'reset', format('{"seq":%s,"attempt":%s}', last_seq, attempts)
        from claimed where attempts > 1
      )
      select tenant, id, fencing_token, prompt, max_tokens, tries, max_attempts, last_seq, traceparent,
        pg_notify(${eventsChannel}, replace(id::text, '-', ''))
      from claimed`,
  );
  return rows.map((row) => ({
    tenant: row.tenant,
    id: row.id,
    fencingToken: row.fencing_token,
    prompt: row.prompt,
    maxTokens: row.max_tokens,
    tries: row.tries,
    maxAttempts: row.max_attempts,
    lastSeq: row.last_seq,
    traceparent: row.traceparent,
  }));
}

type RawClaim = {
  tenant: string;
  id: string;
  fencing_token: string;
  prompt: string;
  max_tokens: number;
  tries: number;
  max_attempts: number;
  last_seq: number;
  traceparent: string | null;
};

/**
 * Appends events if the claim is still ours. False: it is not. A batch that was written although its answer was lost is
 * recognised by its numbers when it comes again.
 */
export async function appendEvents(
  db: Database,
  claim: JobClaim,
  events: readonly EventRow[],
  tokens: number,
): Promise<boolean> {
  const [first, last] = [events[0], events.at(-1)];
  if (first === undefined || last === undefined) return true;
  const rows = await db.query(
    (sql) => sql<{ appended: boolean }[]>`
      with fence as (
        update jobs set last_seq = ${last.seq}, attempt_tokens = attempt_tokens + ${tokens}::integer
        where tenant = ${claim.tenant} and id = ${claim.id} and fencing_token = ${claim.fencingToken}
          and status = 'running' and last_seq = ${first.seq - 1}
        returning tenant, id
      ), told as (
        insert into job_events (tenant, job_id, seq, event, data)
        select fence.tenant, fence.id, ${first.seq}::integer - 1 + w.n, w.event, w.data
        from fence, unnest(
          ${textArray(events.map((event) => event.event))}::text[],
          ${textArray(events.map((event) => event.data))}::text[]
        ) with ordinality as w(event, data, n)
      )
      select ${notify(sql, eventsChannel, claim.id)} is not null as appended from fence
      union all
      select true from jobs
      where tenant = ${claim.tenant} and id = ${claim.id} and fencing_token = ${claim.fencingToken}
        and status = 'running' and last_seq = ${last.seq}`,
  );
  return rows.length > 0;
}

/** Renews the leases of jobs that are still ours and answers their fencing tokens. A row that is being written is passed over. */
export async function renewLeases(db: Database, leaseMs: number, claims: readonly JobClaim[]): Promise<Set<string>> {
  const rows = await db.query(
    (sql) => sql<{ fencing_token: string }[]>`
      with wanted as (
        select w.tenant collate "C" as tenant, w.id, w.fencing_token
        from unnest(
          ${textArray(claims.map((claim) => claim.tenant))}::text[],
          ${textArray(claims.map((claim) => claim.id))}::uuid[],
          ${textArray(claims.map((claim) => claim.fencingToken))}::uuid[]
        ) as w(tenant, id, fencing_token)
      ), free as (
        select jobs.tenant, jobs.id from jobs, wanted w
        where jobs.tenant = w.tenant and jobs.id = w.id and jobs.fencing_token = w.fencing_token
        order by jobs.tenant, jobs.id for update of jobs skip locked
      ), renewed as (
        update jobs set lease_until = clock_timestamp() + ${leaseMs}::float8 * interval '1 millisecond'
        from free where jobs.tenant = free.tenant and jobs.id = free.id
      )
      select jobs.fencing_token from jobs, wanted w
      where jobs.tenant = w.tenant and jobs.id = w.id and jobs.fencing_token = w.fencing_token`,
  );
  return new Set(rows.map((row) => row.fencing_token));
}

/** Jobs of dead workers that a batch takes at most. */
const batchRows = 20;

/**
 * One bounded batch: jobs whose worker has let its lease run out go back to the queue, or are dead when their tries are
 * used up. What their last call came to nobody knows. Each in a transaction of its own, so that one that fails keeps
 * nobody else; the first failure is thrown at the end.
 */
export async function reapOnce(db: Database): Promise<{ requeued: number; dead: number }> {
  const lost = await db.query(
    (sql) => sql<{ tenant: string; id: string; fencing_token: string }[]>`
      select tenant, id, fencing_token from jobs
      where status = 'running' and lease_until <= clock_timestamp() order by lease_until limit ${batchRows}`,
  );
  const counts = { requeued: 0, dead: 0 };
  const failures: unknown[] = [];
  for (const { tenant, id, fencing_token } of lost) {
    try {
      const end = await db.transaction(async ({ sql }) => {
        const job = await lockJob(sql, tenant, id, { fencingToken: fencing_token, leaseIsOver: true });
        return job && (await endLost(sql, job));
      });
      if (end !== undefined) counts[end] += 1;
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
  return counts;
}

async function endLost(sql: postgres.Sql, job: LockedJob): Promise<'requeued' | 'dead'> {
  const attempt = recordedUsage(job, true);
  if (job.tries < job.max_attempts) {
    await requeueJob(sql, job, { delayMs: 0, attempt, wasSent: true, countsAsTry: true });
    return 'requeued';
  }
  const error = { code: 'internal', message: 'The workers that ran this job were lost.' };
  await endJob(sql, job, { status: 'dead', error }, { ...attempt, wasSent: true });
  return 'dead';
}
