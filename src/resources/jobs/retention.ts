import type { Database } from '../../db/pool.ts';

/** Jobs a batch empties at most; each has up to some thousand events. */
const batchRows = 20;

/**
 * One bounded batch: prompt, result and events of jobs that ended longer than `retentionMs` ago are deleted, oldest first.
 * The jobs themselves stay, with what they used and cost. A job whose result is gone has changed: its version says so.
 */
export async function deleteTextsOnce(
  db: Database,
  retentionMs: number,
  limit: number = batchRows,
): Promise<{ emptied: number }> {
  const rows = await db.query(
    (sql) => sql<{ emptied: number }[]>`
      with due as (
        select tenant, id from jobs
        where ended_at <= now() - ${retentionMs}::float8 * interval '1 millisecond' and texts_deleted_at is null
        order by ended_at limit ${limit} for update skip locked
      ), events as (
        delete from job_events e using due where e.tenant = due.tenant and e.job_id = due.id
      ), emptied as (
        update jobs set prompt = '', result = null, texts_deleted_at = now(), version = version + 1
        from due where jobs.tenant = due.tenant and jobs.id = due.id
        returning 1
      )
      select count(*)::int as emptied from emptied`,
  );
  return rows[0] ?? { emptied: 0 };
}
