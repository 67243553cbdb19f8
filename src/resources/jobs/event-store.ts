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

/** Events of a page at most. */
const pageRows = 100;
/** Bytes of a page, give or take one event: what is read for one reader that has fallen behind. */
const pageBytes = 32_768;

/** The events of a job behind the number `after`: a page of them, at least one if there is one. */
export async function readEvents(db: Database, job: JobRef, after: number): Promise<EventPage> {
  const rows = await db.query(
    (sql) => sql<(((EventRow & { found: number }) | { seq: null }) & { deleted: boolean })[]>`
      select e.seq, e.event, e.data, e.found::int, j.texts_deleted_at is not null as deleted
      from jobs j
      left join lateral (
        select seq, event, data, count(*) over () as found,
          sum(octet_length(data)) over (order by seq) - octet_length(data) as bytes_before
        from (
          select seq, event, data from job_events
          where tenant = ${job.tenant} and job_id = ${job.id} and seq > ${after} order by seq limit ${pageRows}
        ) next
      ) e on e.bytes_before < ${pageBytes}
      where j.tenant = ${job.tenant} and j.id = ${job.id}
      order by e.seq`,
  );
  const events = rows.filter((row): row is EventRow & { found: number; deleted: boolean } => row.seq !== null);
  const found = events[0]?.found ?? 0;
  const hasMore = found === pageRows || found > events.length;
  return { events, hasMore, isDeleted: rows[0]?.deleted ?? true };
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
