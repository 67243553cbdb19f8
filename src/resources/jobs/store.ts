import type postgres from 'postgres';
import type { Database } from '../../db/pool.ts';
import { eventRow } from './event-data.ts';
import { type JobRow, type JobStatus, jobColumns } from './row.ts';
import { eventsChannel, notify, queueChannel } from './signals.ts';

/** A job to be. */
export type NewJob = {
  readonly tenant: string;
  readonly id: string;
  readonly prompt: string;
  readonly promptEstimate: number;
  readonly maxTokens: number;
  readonly priceMicros: number;
  readonly holdMicros: number;
  readonly maxAttempts: number;
  readonly createdAt: Date;
  readonly traceparent: string | null;
  readonly deliveryDigest: Uint8Array | null;
};

/** Inserts a queued job with its first event. Undefined: a job of this delivery is there already. */
export async function insertJob(sql: postgres.Sql, job: NewJob): Promise<JobRow | undefined> {
  const { seq, event, data } = eventRow(1, { event: 'status', status: 'queued' });
  const rows = await sql<JobRow[]>`
    with jobs as (
      insert into jobs (tenant, id, kind, prompt, prompt_estimate, max_tokens, price_micros, hold_micros, status, version,
        attempts, tries, max_attempts, run_at, last_seq, attempt_tokens, prompt_tokens, completion_tokens,
        unknown_attempts, cost_micros, delivery_digest, traceparent, created_at, updated_at)
      values (${job.tenant}, ${job.id}, 'generate', ${job.prompt}, ${job.promptEstimate}, ${job.maxTokens},
        ${job.priceMicros}, ${job.holdMicros}, 'queued', 1, 0, 0, ${job.maxAttempts}, now(), ${seq}, 0, 0, 0, 0, 0,
        ${job.deliveryDigest as Buffer | null}, ${job.traceparent}, ${job.createdAt}, ${job.createdAt})
      on conflict (tenant, delivery_digest) do nothing
      returning *
    ), told as (
      insert into job_events (tenant, job_id, seq, event, data)
      select tenant, id, ${seq}, ${event}, ${data} from jobs
    )
    select ${jobColumns(sql)}, ${notify(sql, queueChannel, job.id)}, ${notify(sql, eventsChannel, job.id)} from jobs`;
  return rows[0];
}

/** One job of the tenant. */
export async function findJob(db: Database, tenant: string, id: string): Promise<JobRow | undefined> {
  const rows = await db.query(
    (sql) => sql<JobRow[]>`select ${jobColumns(sql)} from jobs where tenant = ${tenant} and id = ${id}`,
  );
  return rows[0];
}

/** The job that a delivery has become. */
export async function findDelivery(
  db: Database,
  tenant: string,
  deliveryDigest: Uint8Array,
): Promise<JobRow | undefined> {
  const rows = await db.query(
    (sql) => sql<JobRow[]>`
      select ${jobColumns(sql)} from jobs where tenant = ${tenant} and delivery_digest = ${deliveryDigest as Buffer}`,
  );
  return rows[0];
}

/** Up to `limit` jobs of the tenant before `beforeId`, newest first: ids sort by creation. */
export async function listJobs(
  db: Database,
  tenant: string,
  status: JobStatus | undefined,
  beforeId: string | undefined,
  limit: number,
): Promise<readonly JobRow[]> {
  return await db.query(
    (sql) => sql<JobRow[]>`
      select ${jobColumns(sql)} from jobs
      where tenant = ${tenant}
        ${status === undefined ? sql`` : sql`and status = ${status}`}
        ${beforeId === undefined ? sql`` : sql`and id < ${beforeId}`}
      order by id desc limit ${limit}`,
  );
}
