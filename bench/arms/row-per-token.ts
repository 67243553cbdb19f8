import type { Database } from '../../src/db/pool.ts';
import { deriveCallKey } from '../../src/llm/call-key.ts';
import type { Provider } from '../../src/llm/provider.ts';
import { startLoop } from '../../src/loop.ts';
import { appendEvents, type ClaimedJob, claimJobs } from '../../src/resources/jobs/claims.ts';
import { eventRow } from '../../src/resources/jobs/event-data.ts';
import { jobId } from '../../src/resources/jobs/row.ts';
import { endJob, lockJob } from '../../src/resources/jobs/transitions.ts';

/** Jobs that run at a time. */
const maxRunning = 100;
/** How often the queue is looked at. Milliseconds. */
const pollMs = 10;
const leaseMs = 60_000;

/** Workers that can be stopped. */
export type BenchWorkers = { stop(): Promise<void> };

/** The server's workers as one would write them first: every token is a row and a statement of its own. */
export function startRowPerToken(db: Database, provider: Provider, onError: (error: unknown) => void): BenchWorkers {
  const running = new Set<Promise<void>>();
  const loop = startLoop(
    async () => {
      for (const job of await claimJobs(db, leaseMs, maxRunning - running.size)) {
        const run = runJob(db, provider, job).catch(onError);
        running.add(run);
        void run.then(() => running.delete(run));
      }
      return { more: false };
    },
    pollMs,
    onError,
  );
  return {
    async stop() {
      await loop.stop();
      await Promise.all(running);
    },
  };
}

async function runJob(db: Database, provider: Provider, job: ClaimedJob): Promise<void> {
  let seq = job.lastSeq;
  let text = '';
  let usage = { promptTokens: 0, completionTokens: 0 };
  const call = {
    prompt: job.prompt,
    maxTokens: job.maxTokens,
    signal: new AbortController().signal,
    idempotencyKey: deriveCallKey({ tenant: job.tenant, key: jobId(job.id), step: 'generate' }),
  };
  for await (const piece of provider.generate(call)) {
    if (piece.kind === 'end') {
      usage = piece.usage ?? usage;
      continue;
    }
    text += piece.text;
    seq += 1;
    if (!(await appendEvents(db, job, [eventRow(seq, { event: 'delta', text: piece.text })], 1))) return;
  }
  await db.transaction(async ({ sql }) => {
    const locked = await lockJob(sql, job.tenant, job.id, { fencingToken: job.fencingToken });
    if (locked === undefined) return;
    await endJob(sql, locked, { status: 'succeeded', text }, { ...usage, isUnknown: false, wasSent: true });
  });
}
