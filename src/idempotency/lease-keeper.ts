import type { Database } from '../db/pool.ts';
import { type Claim, release, renew } from './claims.ts';
import { FenceLost } from './fence-lost.ts';

/** A claim under renewal. */
export type HeldLease = {
  /** Aborts when the claim is not ours any more, or when the server must stop now. */
  readonly signal: AbortSignal;
  /** The claim has come to an end (completed, abandoned, released): no more renewals. */
  end(): void;
};

/** Renews the leases of all claims this process owns, in one statement a round. */
export type LeaseKeeper = {
  hold(claim: Claim): HeldLease;
  /** One round: renews what has been held long enough. */
  renewOnce(): Promise<void>;
  /** Claims held now. */
  count(): number;
  /** Aborts the work of all claims and releases them: the next try need not wait for their leases. */
  releaseAll(reason: unknown): Promise<void>;
  stop(): Promise<void>;
};

type Held = { readonly claim: Claim; readonly sinceMs: number; readonly abort: AbortController };

/** A keeper with a round every third of a lease: two rounds may fail before a lease is lost. */
export function createLeaseKeeper(
  db: Database,
  leaseMs: number,
  onError: (error: unknown) => void,
  nowMs: () => number = () => performance.now(),
): LeaseKeeper {
  const held = new Map<string, Held>();
  const everyMs = Math.max(5, Math.floor(leaseMs / 3));
  let round: Promise<void> | undefined;

  const renewOnce = async () => {
    // Most claims end long before this; only those that last are renewed.
    const due = [...held.values()].filter((entry) => nowMs() - entry.sinceMs >= everyMs / 2);
    if (due.length === 0) return;
    const ours = await renew(
      db,
      leaseMs,
      due.map((entry) => entry.claim),
    );
    for (const { claim, abort } of due) {
      if (!ours.has(claim.fencingToken) && held.has(claim.fencingToken))
        abort.abort(new FenceLost('the claim was lost'));
    }
  };

  const timer = setInterval(() => {
    if (round !== undefined) return;
    round = renewOnce()
      .catch(onError)
      .finally(() => {
        round = undefined;
      });
  }, everyMs);
  timer.unref();

  return {
    hold(claim) {
      const abort = new AbortController();
      held.set(claim.fencingToken, { claim, sinceMs: nowMs(), abort });
      return { signal: abort.signal, end: () => void held.delete(claim.fencingToken) };
    },
    renewOnce,
    count: () => held.size,
    async releaseAll(reason) {
      const entries = [...held.values()];
      if (entries.length === 0) return;
      for (const { abort } of entries) abort.abort(reason);
      await release(
        db,
        entries.map((entry) => entry.claim),
      );
    },
    async stop() {
      clearInterval(timer);
      await round;
    },
  };
}
