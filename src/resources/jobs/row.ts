import type postgres from 'postgres';
import { tenantDigest } from '../../auth/tenant-digest.ts';
import type { Source } from '../../credits/entry.ts';
import { formatId } from '../../protocol/uuid.ts';
import { formatVersionTag } from '../../protocol/version-tag.ts';

/** States of a job; the last four are ends. */
export type JobStatus = 'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled' | 'dead';

/** What a failed or dead job says of itself. */
export type JobError = { readonly code: string; readonly message: string };

/** A job as it is kept; `id` is a UUIDv7 without its prefix. */
export type JobRow = {
  readonly tenant: string;
  readonly id: string;
  readonly kind: 'generate';
  readonly prompt_estimate: number;
  readonly price_micros: number;
  readonly hold_micros: number;
  readonly status: JobStatus;
  readonly version: number;
  readonly attempts: number;
  readonly tries: number;
  readonly max_attempts: number;
  readonly fencing_token: string | null;
  readonly last_seq: number;
  readonly attempt_tokens: number;
  /** JSON of the text. */
  readonly result: string | null;
  readonly error_code: string | null;
  readonly error_message: string | null;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly unknown_attempts: number;
  readonly cost_micros: number;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly texts_deleted_at: Date | null;
};

/** The columns of a `JobRow`: all but the prompt, which only the worker reads. */
export function jobColumns(sql: postgres.Sql) {
  return sql`jobs.tenant, jobs.id, jobs.kind, jobs.prompt_estimate, jobs.price_micros, jobs.hold_micros, jobs.status,
    jobs.version, jobs.attempts, jobs.tries, jobs.max_attempts, jobs.fencing_token, jobs.last_seq, jobs.attempt_tokens,
    jobs.result, jobs.error_code, jobs.error_message, jobs.prompt_tokens, jobs.completion_tokens, jobs.unknown_attempts,
    jobs.cost_micros, jobs.created_at, jobs.updated_at, jobs.texts_deleted_at`;
}

/** Whether nothing will happen to it any more. */
export function isEnded(status: JobStatus): boolean {
  return status !== 'queued' && status !== 'running';
}

/** A job's id on the wire. */
export function jobId(id: string): string {
  return formatId('job', id);
}

/** A job as something that holds credits. */
export function jobSource(job: { readonly tenant: string; readonly id: string }): Source {
  return { tenant: job.tenant, type: 'job', id: jobId(job.id) };
}

/** What was used, as jobs and events show it. */
export type UsageItem = {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly unknown_attempts: number;
};

/** A job's entity tag. */
export function jobTag(job: Pick<JobRow, 'tenant' | 'id' | 'version'>): string {
  return formatVersionTag(jobId(job.id), job.version, tenantDigest(job.tenant));
}

/** A job as it is answered. */
export function jobItem(job: JobRow) {
  return {
    job_id: jobId(job.id),
    kind: job.kind,
    status: job.status,
    attempts: job.attempts,
    max_attempts: job.max_attempts,
    result: job.result === null ? null : (JSON.parse(job.result) as string),
    error: job.error_code === null ? null : { code: job.error_code, message: job.error_message },
    usage: usageItem(job),
    cost_micros: job.cost_micros,
    version: job.version,
    etag: jobTag(job),
    created_at: job.created_at.toISOString(),
    updated_at: job.updated_at.toISOString(),
  };
}

/** The usage of a job's row. */
export function usageItem(row: UsageItem): UsageItem {
  const { prompt_tokens, completion_tokens, unknown_attempts } = row;
  return { prompt_tokens, completion_tokens, unknown_attempts };
}
