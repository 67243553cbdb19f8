import type { Queries } from '../db/pool.ts';
import { type Claim, release, renew } from './claims.ts';
import { FenceLost } from './fence-lost.ts';

/** A claim under renewal. */
export type HeldLease = {
  /** Aborts when the claim is not ours any more, or when the server must stop now. */
  readonly signal: AbortSignal;
  /** The claim has come to an end (completed, abandoned, released): no more renewals. */
  end(): void;
};

/** Renews the leases of all claims this process owns, in one statement a round, and gives back those whose work has failed. */
export type LeaseKeeper = {
  hold(claim: Claim): HeldLease;
  /**
   * Releases a claim whose work has failed. When its row is out of reach (its transaction was cut and Postgres has not let
   * go yet, or Postgres is away) it is tried again in the background for as long as the lease would last.
   */
  giveBack(claim: Claim): Promise<void>;
  /** One round: renews what has been held long enough. */
  renewOnce(): Promise<void>;
  /** Claims held now. */
  count(): number;
  /** Aborts the work of all claims and releases them: the next try need not wait for their leases. */
  releaseAll(reason: unknown): Promise<void>;
  stop(): Promise<void>;
};

/** Pause between two tries to give back, in milliseconds: a cut transaction is rolled back in less. */
const giveBackMs = 100;
/** Tries that reach Postgres: by then the row is not locked but done, or was never there. */
const maxGiveBacks = 30;

type Unreleased = { readonly claim: Claim; readonly untilMs: number; tries: number };

type Held = { readonly claim: Claim; readonly sinceMs: number; readonly abort: AbortController };

/** A keeper with a round every third of a lease: two rounds may fail before a lease is lost. */
export function createLeaseKeeper(
  db: Queries,
  leaseMs: number,
  onError: (error: unknown) => void,
  nowMs: () => number = () => performance.now(),
): LeaseKeeper {
  const held = new Map<string, Held>();
  const everyMs = Math.max(5, Math.floor(leaseMs / 3));
  const unreleased = new Map<string, Unreleased>();
  let round: Promise<void> | undefined;
  let nextTry: NodeJS.Timeout | undefined;

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

  const releaseOnce = async () => {
    const entries = [...unreleased.values()];
    const released = await release(
      db,
      entries.map((entry) => entry.claim),
    );
    for (const entry of entries) {
      entry.tries += 1;
      if (released.has(entry.claim.fencingToken) || entry.tries >= maxGiveBacks) {
        unreleased.delete(entry.claim.fencingToken);
      }
    }
  };
  const tryAgain = () => {
    nextTry ??= setTimeout(async () => {
      for (const [token, { untilMs }] of unreleased) if (nowMs() > untilMs) unreleased.delete(token);
      // Postgres may be away for longer than a try; the leases run out in any case.
      if (unreleased.size > 0) await releaseOnce().catch(() => {});
      nextTry = undefined;
      if (unreleased.size > 0) tryAgain();
    }, giveBackMs).unref();
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
    async giveBack(claim) {
      // A round that is under way might renew after the release.
      held.delete(claim.fencingToken);
      await round;
      const released = await release(db, [claim]).catch((error: unknown) => {
        onError(error);
        return new Set<string>();
      });
      if (released.has(claim.fencingToken)) return;
      unreleased.set(claim.fencingToken, { claim, untilMs: nowMs() + leaseMs, tries: 1 });
      tryAgain();
    },
    renewOnce,
    count: () => held.size,
    async releaseAll(reason) {
      for (const { abort } of held.values()) abort.abort(reason);
      const claims = [...held.values(), ...unreleased.values()].map((entry) => entry.claim);
      if (claims.length > 0) await release(db, claims);
    },
    async stop() {
      clearInterval(timer);
      clearTimeout(nextTry);
      await round;
    },
  };
}
