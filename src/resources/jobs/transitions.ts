import type postgres from 'postgres';
import { settle } from '../../credits/holds.ts';
import { eventRow, type JobEvent } from './event-data.ts';
import { isEnded, type JobError, type JobRow, jobColumns, jobSource } from './row.ts';
import { cancelChannel, eventsChannel, notify, queueChannel } from './signals.ts';
import { type AttemptUsage, addUsage, costOf } from './usage.ts';

/*
 * The life of a job (table jobs). The state is the version: every arrow is an update whose WHERE names the state it leaves,
 * and where a worker does it, the worker's fencing token.
 *
 *            claim: attempts + 1, new token          answered
 *   queued ─────────────────────────────► running ─────────────► succeeded
 *    │  ▲                                  │ │ │
 *    │  │ back-off, hand-back, lease lost  │ │ └─ final ───────► failed
 *    │  └──────────────────────────────────┘ │
 *    │                                       ├─ tries used up ─► dead
 *    └──────────── cancel ───────────────────┴─ cancel ────────► cancelled
 *
 * Each end releases the hold, charges what was used and writes the stream's terminal event in the same transaction.
 * A cancelled job is settled there and then with what its events show; its worker finds its token gone and hangs up.
 */

/** A job locked by the transaction at hand. */
export type LockedJob = JobRow & { readonly locked: true };

/** Locks a job; with `owner` only while that worker owns it. Undefined: it is not there, or not so. */
export async function lockJob(
  sql: postgres.Sql,
  tenant: string,
  id: string,
  owner?: { readonly fencingToken: string; readonly leaseIsOver?: true },
): Promise<LockedJob | undefined> {
  const rows = await sql<LockedJob[]>`
    select ${jobColumns(sql)}, true as locked from jobs
    where tenant = ${tenant} and id = ${id}
      ${owner === undefined ? sql`` : sql`and fencing_token = ${owner.fencingToken} and status = 'running'`}
      ${owner?.leaseIsOver ? sql`and lease_until <= clock_timestamp()` : sql``}
    for update`;
  return rows[0];
}

/** How a job ends. */
export type JobEnd =
  | { readonly status: 'succeeded'; readonly text: string }
  | { readonly status: 'failed' | 'dead'; readonly error: JobError }
  | { readonly status: 'cancelled' };

/** Ends a locked job that has not ended: state, terminal event and settlement. Answers the job as it is now. */
export async function endJob(
  sql: postgres.Sql,
  job: LockedJob,
  end: JobEnd,
  attempt: AttemptUsage & { readonly wasSent: boolean },
): Promise<JobRow> {
  if (isEnded(job.status)) throw new Error('a job ends once');
  const usage = addUsage(job, attempt);
  const use = { chargeMicros: costOf(usage, job.price_micros), unknownAttempts: usage.unknown_attempts };
  const cost = (await settle(sql, jobSource(job), use)) ?? 0;
  const error = 'error' in end ? end.error : undefined;
  const { seq, event, data } = eventRow(job.last_seq + 1, terminalEvent(end, usage));
  const rows = await sql<JobRow[]>`
    with jobs as (
      update jobs set status = ${end.status}, version = version + 1, fencing_token = null, lease_until = null,
        attempts = attempts - ${attempt.wasSent ? 0 : 1}::integer, attempt_tokens = 0, last_seq = ${seq},
        result = ${end.status === 'succeeded' ? JSON.stringify(end.text) : null},
        error_code = ${error?.code ?? null}, error_message = ${error?.message ?? null},
        prompt_tokens = ${usage.prompt_tokens}, completion_tokens = ${usage.completion_tokens},
        unknown_attempts = ${usage.unknown_attempts}, cost_micros = ${cost},
        updated_at = clock_timestamp(), ended_at = clock_timestamp()
      where tenant = ${job.tenant} and id = ${job.id} and status = ${job.status}
      returning *
    ), told as (
      insert into job_events (tenant, job_id, seq, event, data)
      select tenant, id, ${seq}, ${event}, ${data} from jobs
    )
    select ${jobColumns(sql)}, ${notify(sql, eventsChannel, job.id)}
      ${end.status === 'cancelled' && job.status === 'running' ? sql`, ${notify(sql, cancelChannel, job.id)}` : sql``}
    from jobs`;
  return rows[0] as JobRow;
}

function terminalEvent(end: JobEnd, usage: ReturnType<typeof addUsage>): JobEvent {
  switch (end.status) {
    case 'succeeded':
      return { event: 'done', usage };
    case 'cancelled':
      return { event: 'cancelled', usage };
    default:
      return { event: 'error', code: end.error.code };
  }
}

/** How a running job goes back to the queue. */
export type Requeue = {
  readonly delayMs: number;
  readonly attempt: AttemptUsage;
  /** False: no call left the worker, so it is no attempt. */
  readonly wasSent: boolean;
  /** False: the worker gave it back for reasons of its own, which use up no try. */
  readonly countsAsTry: boolean;
};

/** Puts a locked running job back into the queue. */
export async function requeueJob(sql: postgres.Sql, job: LockedJob, back: Requeue): Promise<void> {
  const usage = addUsage(job, back.attempt);
  const { seq, event, data } = eventRow(job.last_seq + 1, { event: 'status', status: 'queued' });
  await sql`
    with back as (
      update jobs set status = 'queued', version = version + 1, fencing_token = null, lease_until = null,
        attempts = attempts - ${back.wasSent ? 0 : 1}::integer, tries = tries - ${back.countsAsTry ? 0 : 1}::integer,
        run_at = clock_timestamp() + ${back.delayMs}::float8 * interval '1 millisecond',
        attempt_tokens = 0, last_seq = ${seq},
        prompt_tokens = ${usage.prompt_tokens}, completion_tokens = ${usage.completion_tokens},
        unknown_attempts = ${usage.unknown_attempts}, updated_at = clock_timestamp()
      where tenant = ${job.tenant} and id = ${job.id} and status = 'running'
      returning tenant, id
    ), told as (
      insert into job_events (tenant, job_id, seq, event, data) select tenant, id, ${seq}, ${event}, ${data} from back
    )
    select ${notify(sql, eventsChannel, job.id)}, ${notify(sql, queueChannel, job.id)} from back`;
}
