import { textArray } from '../../db/arrays.ts';
import type { Database } from '../../db/pool.ts';
import type { EventRow } from './event-data.ts';

/** Names a job. */
export type JobRef = { readonly tenant: string; readonly id: string };

/** Some events of a job in their order. `isDeleted`: there are none any more. */
export type EventPage = {
  readonly events: readonly EventRow[];
  readonly hasMore: boolean;
  readonly isDeleted: boolean;
};

/** Events of a page. */
const pageRows = 100;

/** The events of a job behind the number `after`. */
export async function readEvents(db: Database, job: JobRef, after: number): Promise<EventPage> {
  const rows = await db.query(
    (sql) => sql<((EventRow | { seq: null }) & { deleted: boolean })[]>`
      select e.seq, e.event, e.data, j.texts_deleted_at is not null as deleted
      from jobs j
      left join lateral (
        select seq, event, data from job_events
        where tenant = ${job.tenant} and job_id = ${job.id} and seq > ${after} order by seq limit ${pageRows}
      ) e on true
      where j.tenant = ${job.tenant} and j.id = ${job.id}
      order by e.seq`,
  );
  const events = rows.filter((row): row is EventRow & { deleted: boolean } => row.seq !== null);
  return { events, hasMore: events.length === pageRows, isDeleted: rows[0]?.deleted ?? true };
}

/** The number of the last event of each job, in one statement for all of them. */
export async function lastNumbers(db: Database, jobs: readonly JobRef[]): Promise<{ job: JobRef; lastSeq: number }[]> {
  const rows = await db.query(
    (sql) => sql<{ tenant: string; id: string; last_seq: number }[]>`
      select jobs.tenant, jobs.id, jobs.last_seq
      from unnest(${textArray(jobs.map((job) => job.tenant))}::text[], ${textArray(jobs.map((job) => job.id))}::uuid[])
        as w(tenant, id)
      join jobs on jobs.tenant = w.tenant collate "C" and jobs.id = w.id`,
  );
  return rows.map(({ tenant, id, last_seq }) => ({ job: { tenant, id }, lastSeq: last_seq }));
}
