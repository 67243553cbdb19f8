import { patiently } from '../../db/patiently.ts';
import type { Database, Tx } from '../../db/pool.ts';
import { FenceLost } from '../../idempotency/fence-lost.ts';
import { deriveCallKey } from '../../llm/call-key.ts';
import type { ModelError, Provider } from '../../llm/provider.ts';
import { type ModelRun, runModel } from '../../llm/run.ts';

import { appendEvents, type ClaimedJob } from './claims.ts';
import { createDeltaWriter } from './delta-writer.ts';
import { deltas, eventRow } from './event-data.ts';
import { retryDelayMs } from './retry-delay.ts';
import { jobId } from './row.ts';
import { endJob, type LockedJob, lockJob, type Requeue, requeueJob } from './transitions.ts';
import type { AttemptUsage } from './usage.ts';

/** What a run needs of the process. */
export type RunParts = {
  readonly db: Database;
  readonly provider: Provider;
  readonly timeoutMs: number;
  /** In [0, 1). */
  readonly random: () => number;
};

/** What the signal of a run aborts with when the job is to go back to the queue at once. */
export class HandBack extends Error {
  override readonly name = 'HandBack';
}

/** How a run ended, for the log. `lost`: the job was cancelled or taken over meanwhile. */
export type RunEnd = 'succeeded' | 'failed' | 'dead' | 'requeued' | 'handed_back' | 'lost';

/**
 * Runs one claimed job: calls the model without a connection, writes what it says as it comes, and brings the job to its
 * next state in one short transaction. `stop` aborts with `HandBack` or `FenceLost`. Throws what nobody foresaw; the job's
 * lease runs out then.
 */
export async function runJob(parts: RunParts, job: ClaimedJob, stop: AbortSignal): Promise<RunEnd> {
  let seq = job.lastSeq;
  const writer = createDeltaWriter(async (text, tokens) => {
    const events = deltas(text).map((event) => eventRow(++seq, event));
    if (!(await patiently(stop, () => appendEvents(parts.db, job, events, tokens)))) throw new FenceLost();
  });
  try {
    const run = await callModel(parts, job, stop, writer.push);
    if (stop.reason instanceof FenceLost || (run.kind === 'aborted' && run.reason instanceof FenceLost)) return 'lost';
    // What was said stays readable whatever becomes of the attempt.
    await writer.flush();
    return await conclude(parts, job, stop, run);
  } catch (error) {
    if (error instanceof FenceLost || stop.reason instanceof FenceLost) return 'lost';
    throw error;
  } finally {
    writer.discard();
  }
}

async function callModel(
  parts: RunParts,
  job: ClaimedJob,
  signal: AbortSignal,
  push: (text: string, tokens: number) => Promise<void>,
): Promise<ModelRun> {
  const call = {
    prompt: job.prompt,
    maxTokens: job.maxTokens,
    signal,
    idempotencyKey: deriveCallKey({ tenant: job.tenant, key: jobId(job.id), step: 'generate' }),
    ...(job.traceparent === null ? {} : { traceparent: job.traceparent }),
  };
  return await runModel(parts.provider, call, { timeoutMs: parts.timeoutMs, onPiece: push });
}

/** From the end of the call to the job's next state. */
async function conclude(parts: RunParts, job: ClaimedJob, stop: AbortSignal, run: ModelRun): Promise<RunEnd> {
  const used = usageOf(run);
  const attempt = { ...used, wasSent: run.sent };
  if (run.kind === 'answered') {
    await change(parts.db, job, stop, (tx, locked) =>
      endJob(tx.sql, locked, { status: 'succeeded', text: run.text }, attempt),
    );
    return 'succeeded';
  }
  if (run.kind === 'aborted') {
    if (!(run.reason instanceof HandBack)) throw run.reason;
    await requeue(parts.db, job, stop, { delayMs: 0, attempt: used, wasSent: run.sent, countsAsTry: false });
    return 'handed_back';
  }
  if (run.error.mayRetry && job.tries < job.maxAttempts) {
    const delayMs = retryDelayMs(job.tries, parts.random(), run.error.retryAfterMs);
    await requeue(parts.db, job, stop, { delayMs, attempt: used, wasSent: run.sent, countsAsTry: true });
    return 'requeued';
  }
  const status = run.error.mayRetry ? 'dead' : 'failed';
  await change(parts.db, job, stop, (tx, locked) =>
    endJob(tx.sql, locked, { status, error: errorOf(run.error) }, attempt),
  );
  return status;
}

function usageOf(run: ModelRun): AttemptUsage {
  const isUnknown = run.kind === 'failed' && run.sent && run.error.outcomeUnknown;
  return { promptTokens: run.usage.promptTokens, completionTokens: run.usage.completionTokens, isUnknown };
}

function errorOf({ code, message }: ModelError) {
  return { code, message };
}

function requeue(db: Database, job: ClaimedJob, stop: AbortSignal, back: Requeue): Promise<void> {
  return change(db, job, stop, (tx, locked) => requeueJob(tx.sql, locked, back));
}

/** One transaction on the job while it is still ours; throws `FenceLost` when it is not. */
function change<T>(
  db: Database,
  job: ClaimedJob,
  stop: AbortSignal,
  work: (tx: Tx, locked: LockedJob) => Promise<T>,
): Promise<T> {
  return patiently(stop, () =>
    db.transaction(async (tx) => {
      const locked = await lockJob(tx.sql, job.tenant, job.id, { fencingToken: job.fencingToken });
      if (locked === undefined) throw new FenceLost();
      return await work(tx, locked);
    }),
  );
}
