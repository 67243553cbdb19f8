import { setTimeout as sleep } from 'node:timers/promises';
import { sendCopy } from './sender.ts';
import { readSnapshot, type Snapshot } from './snapshot.ts';
import { boundMsOf, budgetMs, leaseMs, sweepMs } from './timing.ts';
import type { Wanted, WorkParts } from './workload.ts';
import { isSettled } from './workload.ts';
import type { World } from './world.ts';

/** Share of the intents without an end that somebody asks for again; the others show what is left of the ones nobody does. */
const againShare = 0.5;
/** Requests at a time. */
const width = 6;
/** Until every job must have ended: its tries, each with its time limit and the pause before it, behind others. Milliseconds. */
const jobsLimitMs = 60_000;
/** Until holds that have run out are released, in milliseconds. */
const holdsLimitMs = 5_000;

/** After the storm: some clients come back for an end, everything comes to rest, the servers end in order. Answers what is there then. */
export async function calmDown(world: World, parts: WorkParts, again: readonly Wanted[]): Promise<Snapshot> {
  const { sql } = world;
  const queue = again.filter((wanted) => !isSettled(parts, wanted.intent) && parts.random.chance(againShare)).values();
  const client = async () => {
    for (const { intent, request } of queue) {
      const limitMs = boundMsOf(intent.kind);
      await sendCopy(parts, intent, request, { copy: 100, calm: true, budgetMs, limitMs });
    }
  };
  await Promise.all(Array.from({ length: width }, client));
  await within(
    jobsLimitMs,
    async () => (await sql`select 1 from jobs where status in ('queued', 'running')`).length === 0,
  );
  // Claims of owners that died last have run out after this, and so has the sweep's pause.
  await sleep(leaseMs + 2 * sweepMs);
  // A dead owner's hold would end by itself a minute later.
  await sql`update holds set expires_at = now() where expires_at is not null`;
  await within(holdsLimitMs, async () => (await sql`select 1 from holds`).length === 0);
  const snapshot = await readSnapshot(sql);
  await Promise.all(world.slots.map((slot) => slot.end('SIGTERM')));
  return snapshot;
}

/** Waits until it is so, at most so long; if it never is, the checker finds out. */
async function within(limitMs: number, isSo: () => Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + limitMs;
  while (!(await isSo()) && performance.now() < deadlineMs) await sleep(50);
}
