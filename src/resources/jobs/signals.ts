import type postgres from 'postgres';

/*
 * What processes tell one another through NOTIFY, always in the transaction that makes it true. A payload is a job's id
 * (32 hex digits, far below the 8,000 bytes a payload may have) and reveals nothing of a tenant.
 */

/** A job has new events. */
export const eventsChannel = 'retry_safe_job_events';
/** A job may be claimed. */
export const queueChannel = 'retry_safe_job_queue';
/** A running job was cancelled. */
export const cancelChannel = 'retry_safe_job_cancelled';

/** Tells all processes, as a select item. */
export function notify(sql: postgres.Sql, channel: string, id: string) {
  return sql`pg_notify(${channel}, ${id.replaceAll('-', '')})`;
}
