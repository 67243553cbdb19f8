import { FenceLost } from '../../idempotency/fence-lost.ts';
import { errorFields, type Log } from '../../log.ts';
import { type Loop, startLoop } from '../../loop.ts';
import { type ClaimedJob, claimJobs, reapOnce, renewLeases } from './claims.ts';
import { jobId } from './row.ts';
import { HandBack, type RunParts, runJob } from './run-job.ts';

/** What the workers of a process are made of. */
export type WorkerParts = RunParts & {
  /** Jobs that run at a time; 0: none. */
  readonly workers: number;
  readonly leaseMs: number;
  readonly log: Log;
};

/** The workers of one process. */
export type Workers = {
  /** A job may be there to be claimed. */
  wake(): void;
  /** A running job was cancelled: whoever runs it here hangs up at once. `id` as hex. */
  cancelled(id: string): void;
  /** Jobs that run here now. */
  count(): number;
  /** Claims nothing more and hands back what runs, at once. */
  stop(): Promise<void>;
};

/** How often the queue is asked without being told: retries that have become due, leases that have run out. Milliseconds. */
const pollMs = 500;
/** A cancelled or lost job is noticed at least so often, whoever failed to tell. Milliseconds. */
const noticeMs = 1_000;

type Running = { readonly job: ClaimedJob; readonly abort: AbortController; ended: Promise<void> };

/** Starts the workers. */
export function startWorkers(parts: WorkerParts): Workers {
  const { db, workers, leaseMs, log } = parts;
  const running = new Map<string, Running>();
  const onError = (error: unknown) => log.warn('a job worker failed', errorFields(error));
  let isStopping = false;
  let wake = () => {};

  const run = async (job: ClaimedJob, abort: AbortController) => {
    const fields = { job: jobId(job.id), tenant: job.tenant, try: job.tries };
    try {
      log.info('job', { ...fields, end: await runJob(parts, job, abort.signal) });
    } catch (error) {
      log.error('job', { ...fields, end: 'left to its lease', ...errorFields(error) });
    } finally {
      running.delete(job.fencingToken);
      wake();
    }
  };

  const takeOnce = async (): Promise<{ more: boolean }> => {
    const free = workers - running.size;
    if (free <= 0 || isStopping) return { more: false };
    const claimed = await claimJobs(db, leaseMs, free);
    for (const job of claimed) {
      const abort = new AbortController();
      const entry: Running = { job, abort, ended: Promise.resolve() };
      running.set(job.fencingToken, entry);
      entry.ended = run(job, abort);
      // Claimed while the server began to stop.
      if (isStopping) abort.abort(new HandBack());
    }
    return { more: claimed.length > 0 };
  };
  const renewOnce = async () => {
    const entries = [...running.values()];
    if (entries.length === 0) return { more: false };
    const claims = entries.map((entry) => entry.job);
    const ours = await renewLeases(db, leaseMs, claims);
    for (const { job, abort } of entries) {
      if (!ours.has(job.fencingToken)) abort.abort(new FenceLost());
    }
    return { more: false };
  };
  const reap = async () => {
    const counts = await reapOnce(db);
    if (counts.requeued + counts.dead > 0) log.info('jobs of lost workers', counts);
    return { more: false };
  };

  const taking = workers === 0 ? undefined : startLoop(takeOnce, pollMs, onError);
  wake = () => taking?.wake();
  const loops: Loop[] =
    workers === 0
      ? []
      : [
          startLoop(renewOnce, Math.max(5, Math.min(noticeMs, Math.floor(leaseMs / 3))), onError),
          startLoop(reap, pollMs, onError),
        ];

  return {
    wake,
    cancelled(id) {
      for (const { job, abort } of running.values()) {
        if (job.id.replaceAll('-', '') === id) abort.abort(new FenceLost());
      }
    },
    count: () => running.size,
    async stop() {
      isStopping = true;
      const handBack = new HandBack();
      for (const { abort } of running.values()) abort.abort(handBack);
      await taking?.stop();
      await Promise.all([...running.values()].map((entry) => entry.ended));
      await Promise.all(loops.map((loop) => loop.stop()));
    },
  };
}
