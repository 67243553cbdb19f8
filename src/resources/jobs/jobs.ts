import { startListener } from '../../db/listener.ts';
import type { Database } from '../../db/pool.ts';
import type { Mounted } from '../../handler.ts';
import type { Provider } from '../../llm/provider.ts';
import { errorFields, type Log } from '../../log.ts';
import { type Loop, startLoop } from '../../loop.ts';
import type { Pager } from '../page.ts';
import type { JobSettings } from './accept.ts';
import { type Delivered, enqueueDelivery } from './delivery.ts';
import { lastNumbers, readEvents } from './event-store.ts';
import { createJobFeed } from './feed.ts';
import { jobProcedures } from './procedures.ts';
import { deleteTextsOnce } from './retention.ts';
import { cancelChannel, eventsChannel, queueChannel } from './signals.ts';
import { startWorkers } from './workers.ts';

/** What jobs are made of in one process. */
export type JobParts = {
  readonly db: Database;
  /** For the connection that listens; undefined where nobody can listen (PgBouncer): everything is polled for then. */
  readonly listenUrl: string | undefined;
  readonly provider: Provider;
  readonly pager: Pager;
  readonly log: Log;
  readonly settings: JobSettings & {
    readonly workers: number;
    readonly leaseMs: number;
    readonly timeoutMs: number;
    readonly retentionMs: number;
    readonly sweepMs: number;
  };
};

/** The jobs of one process: its procedures, its workers and its readers. */
export type Jobs = {
  readonly procedures: readonly Mounted[];
  /** Accepts what came without a client's key: see `enqueueDelivery`. */
  enqueueDelivery(tenant: string, kind: 'generate', payload: unknown): Promise<Delivered>;
  /** Jobs that run here now. */
  runningCount(): number;
  /** Whether others' notices arrive at once; else they are polled for. */
  isListening(): boolean;
  /** Hands running jobs back at once, then stops everything. */
  stop(): Promise<void>;
};

/** How often streams look for new events when nobody tells of them, in milliseconds. */
const pollMs = 250;
/** The same while notices arrive: for the one that got lost. */
const safetyPollMs = 5_000;

/** Starts the jobs of a process. */
export function startJobs(parts: JobParts): Jobs {
  const { db, log, settings } = parts;
  const feed = createJobFeed((job, after) => readEvents(db, job, after));
  const workers = startWorkers({
    db,
    provider: parts.provider,
    timeoutMs: settings.timeoutMs,
    random: Math.random,
    workers: settings.workers,
    leaseMs: settings.leaseMs,
    log,
  });
  const listener =
    parts.listenUrl === undefined
      ? undefined
      : startListener({
          url: parts.listenUrl,
          channels: {
            [eventsChannel]: feed.notice,
            [queueChannel]: workers.wake,
            [cancelChannel]: workers.cancelled,
          },
          onListening() {
            feed.noticeAll();
            workers.wake();
          },
          onError: (error) => log.warn('the listening connection was lost', errorFields(error)),
        });

  const isListening = () => listener?.isListening() ?? false;
  let polledMs = 0;
  const pollOnce = async () => {
    const read = feed.jobs();
    const everyMs = isListening() ? safetyPollMs : pollMs;
    if (read.length === 0 || performance.now() - polledMs < everyMs) return { more: false };
    for (const { job, lastSeq } of await lastNumbers(db, read)) feed.noticeUpTo(job, lastSeq);
    polledMs = performance.now();
    return { more: false };
  };
  const loops: Loop[] = [
    startLoop(pollOnce, pollMs, (error) => log.warn('polling for events failed', errorFields(error))),
    startLoop(
      async () => ({ more: (await deleteTextsOnce(db, settings.retentionMs)).emptied > 0 }),
      settings.sweepMs,
      (error) => log.warn('deleting texts of old jobs failed', errorFields(error)),
    ),
  ];

  return {
    procedures: jobProcedures(db, parts.pager, feed, settings),
    enqueueDelivery: (tenant, kind, payload) => enqueueDelivery(db, settings, tenant, kind, payload),
    runningCount: workers.count,
    isListening,
    async stop() {
      await workers.stop();
      await Promise.all(loops.map((loop) => loop.stop()));
      await listener?.stop();
    },
  };
}
