import type { Database } from '../../db/pool.ts';
import { type Mounted, mount } from '../../handler.ts';
import { contract } from '../../protocol/contract.ts';
import { problem } from '../../protocol/errors.ts';
import { parseId } from '../../protocol/uuid.ts';
import { listBinding, type Pager, pageAnswer } from '../page.ts';
import { acceptJob, type JobSettings } from './accept.ts';
import type { JobFeed } from './feed.ts';
import { isEnded, jobId, jobItem, jobTag } from './row.ts';
import { findJob, listJobs } from './store.ts';
import { jobStream, startOf } from './stream.ts';
import { endJob, lockJob } from './transitions.ts';
import { recordedUsage } from './usage.ts';

/** The procedures of `/v1/jobs`. */
export function jobProcedures(db: Database, pager: Pager, feed: JobFeed, settings: JobSettings): Mounted[] {
  return [
    mount(contract.createJob, {
      async commit(tx, _prepared, { body }, { tenant, now, traceparent }) {
        const job = await acceptJob(tx, settings, { tenant, now, traceparent, deliveryDigest: null }, body);
        if (job === undefined) throw new Error('only a delivery is accepted twice');
        const location = `/v1/jobs/${jobId(job.id)}`;
        const headers = { Location: location, Link: `<${location}/events>; rel="events"`, ETag: jobTag(job) };
        return { status: 202, headers, body: jobItem(job) };
      },
    }),

    mount(contract.getJob, {
      async read({ params }, { tenant }) {
        const job = await findJob(db, tenant, jobOf(params.id));
        if (job === undefined) throw problem('not_found');
        return { status: 200, headers: { ETag: jobTag(job) }, body: jobItem(job) };
      },
    }),

    mount(contract.listJobs, {
      async read({ query: { limit, after, status } }, { tenant }) {
        const binding = listBinding(tenant, contract.listJobs.path, status === undefined ? {} : { status });
        const beforeId = pager.start(binding, after)?.[0];
        return pageAnswer(pager, {
          binding,
          limit,
          after,
          rows: await listJobs(db, tenant, status, beforeId, limit + 1),
          position: (job) => [job.id],
          item: jobItem,
          version: (job) => [job.id, job.version],
        });
      },
    }),

    mount(contract.getJobEvents, {
      async read({ params, query }, { tenant, header }) {
        const job = await findJob(db, tenant, jobOf(params.id));
        if (job === undefined) throw problem('not_found');
        const after = startOf(header('last-event-id'), query.after);
        if (after === undefined || after > job.last_seq) throw problem('invalid_cursor');
        if (after === job.last_seq && isEnded(job.status)) return { status: 204 };
        if (job.texts_deleted_at !== null) throw problem('events_deleted');
        const headers = {
          'Content-Type': 'text/event-stream',
          'Cache-Control': 'no-store, no-transform',
          // Asks nginx, and whoever follows it, not to collect.
          'X-Accel-Buffering': 'no',
        };
        return { status: 200, headers, stream: jobStream(feed, { tenant, id: job.id }, after) };
      },
    }),

    mount(contract.cancelJob, {
      async commit(tx, _prepared, { params }, { tenant }) {
        const locked = await lockJob(tx.sql, tenant, jobOf(params.id));
        if (locked === undefined) throw problem('not_found');
        const attempt = { ...recordedUsage(locked, false), wasSent: true };
        const job = isEnded(locked.status) ? locked : await endJob(tx.sql, locked, { status: 'cancelled' }, attempt);
        return { status: 200, headers: { ETag: jobTag(job) }, body: jobItem(job) };
      },
    }),
  ];
}

/** The id in a path, or 404. */
function jobOf(text: string): string {
  const id = parseId('job', text);
  if (id === undefined) throw problem('not_found');
  return id;
}
