import { randomUUID } from 'node:crypto';
import { DatabaseUnavailable, type Queries } from '../db/pool.ts';
import { type Problem, Problem as ProblemClass, problem } from '../protocol/errors.ts';
import { type Batcher, createBatcher } from './batcher.ts';
import {
  abandon,
  type Claim,
  type ClaimOutcome,
  type ClaimRequest,
  claimBatch,
  type IdempotencySettings,
  type KeyRow,
  lookUp,
  type Owned,
  removeGone,
  type StoredAnswer,
  stillRunning,
  takeOver,
} from './claims.ts';
import { FenceLost } from './fence-lost.ts';
import { differingParts } from './fingerprint.ts';
import { createLeaseKeeper, type LeaseKeeper } from './lease-keeper.ts';
import { createWaitingRoom, type WaitingRoom } from './waiting-room.ts';

/** A keyed request on its way in. */
export type KeyedRequest = {
  readonly tenant: string;
  readonly key: string;
  readonly fingerprint: Uint8Array;
  /** The work pays for something before it commits: flush the claim first. */
  readonly durable: boolean;
  /** How long a duplicate may be parked; 0: told at once. */
  readonly waitMs: number;
  /** Aborts when the client is gone; ends parking, never the work. */
  readonly clientGone: AbortSignal;
};

/** What the log and the metrics call the outcome. */
export type KeyOutcome = 'none' | 'first' | 'replayed' | 'in_progress' | 'reused' | 'expired' | 'taken_over';

/** The end of a keyed request that has an answer. */
export type KeyedAnswer = {
  readonly outcome: 'first' | 'taken_over' | 'replayed';
  readonly answer: StoredAnswer;
  readonly expiresAt: Date;
  readonly parked: boolean;
};

/** The end of a keyed request that the key itself refuses. */
export type KeyedRefusal = {
  readonly outcome: 'in_progress' | 'reused' | 'expired';
  readonly problem: Problem;
  readonly parked: boolean;
};

/** The work of one owner: must commit its writes and `complete` the claim in one transaction, or throw and leave nothing. */
export type Work = (claim: Claim, owned: Owned, signal: AbortSignal) => Promise<StoredAnswer>;

/** Events worth counting. */
export type KeyedEvents = {
  takenOver(): void;
  fenced(): void;
  error(message: string, error: unknown): void;
};

/** The protocol of the key around any work. */
export type Keyed = {
  /** Runs the work once per key, or answers what is stored, or refuses. Throws what the work throws. */
  run(request: KeyedRequest, work: Work): Promise<KeyedAnswer | KeyedRefusal>;
  /** What the key alone says of a request that would be refused for another reason; undefined: nothing. Runs nothing. */
  peek(request: KeyedRequest): Promise<KeyedAnswer | KeyedRefusal | undefined>;
  lookUp(tenant: string, key: string): Promise<KeyRow | undefined>;
  readonly leases: LeaseKeeper;
  readonly waitingRoom: WaitingRoom;
};

/** Until a duplicate should ask again, in milliseconds: most requests have ended by then, and a lease never outlasts it by much. */
const inProgressRetryMs = 1_000;
/** A row that is in the way and vanishes is claimed again; so often it happens only under attack. */
const maxTries = 8;
/** Claims that travel in one statement at most. */
const maxBatch = 128;

/** The key protocol of one process on one database. */
export function createKeyed(db: Queries, settings: IdempotencySettings, events: KeyedEvents): Keyed {
  const claim: Batcher<ClaimRequest, ClaimOutcome> = createBatcher(
    (requests) => claimBatch(db, settings, requests),
    maxBatch,
  );
  const leases = createLeaseKeeper(db, settings.leaseMs, (error) =>
    events.error('leases could not be renewed or released', error),
  );
  const waitingRoom = createWaitingRoom(
    (keys) => stillRunning(db, keys),
    (error) => events.error('asking after parked keys failed', error),
  );

  /** What a row in the way says, or undefined when the key may be taken over. */
  const judge = (row: KeyRow, request: KeyedRequest, parked: boolean): KeyedAnswer | KeyedRefusal | undefined => {
    if (row.phase === 'expired') {
      const expired = problem('idempotency_key_expired', { shouldRetry: false });
      return { outcome: 'expired', problem: expired, parked };
    }
    const differs = differingParts(row.fingerprint, request.fingerprint);
    // Bound by a newer build in the middle of a rolling deploy: another process, or this one once renewed, can tell.
    if (differs === undefined) throw problem('unavailable', { retryAfterMs: inProgressRetryMs });
    if (differs.length > 0) {
      const reused = problem('idempotency_key_reused', { shouldRetry: false, members: { differs } });
      return { outcome: 'reused', problem: reused, parked };
    }
    if (row.answer !== undefined) {
      return { outcome: 'replayed', answer: row.answer, expiresAt: row.expiresAt, parked };
    }
    return row.phase === 'in_progress' ? inProgress(parked) : undefined;
  };

  const lookAgain = async (request: KeyedRequest, parked: boolean): Promise<KeyedAnswer | KeyedRefusal> => {
    const row = await lookUp(db, settings, request.tenant, request.key);
    return (row && judge(row, request, parked)) ?? inProgress(parked);
  };

  /**
   * Taking the claim has failed, and yet it may be ours: then whoever retries need not wait for the lease. What was never
   * sent is not ours: while Postgres is away that would be one more statement for each that failed.
   */
  const giveBackIfSent = (ours: Claim) => (error: unknown) => {
    if (error instanceof DatabaseUnavailable && error.commitUnknown) void leases.giveBack(ours);
    throw error;
  };

  /** Runs the work as the owner of the claim and brings the claim to an end, whatever happens. */
  const own = async (
    request: KeyedRequest,
    ours: Claim,
    owned: Owned,
    outcome: 'first' | 'taken_over',
    parked: boolean,
    work: Work,
  ): Promise<KeyedAnswer | KeyedRefusal> => {
    const lease = leases.hold(ours);
    try {
      const answer = await work(ours, owned, lease.signal);
      return { outcome, answer, expiresAt: owned.expiresAt, parked };
    } catch (thrown) {
      // Work that a stop has cut short ends in what the stop says, not in how the work noticed.
      const error: unknown = lease.signal.reason instanceof ProblemClass ? lease.signal.reason : thrown;
      if (error instanceof FenceLost || lease.signal.reason instanceof FenceLost) {
        events.fenced();
        return await lookAgain(request, parked);
      }
      if (error instanceof ProblemClass && error.status < 500) {
        // The refusal is final only if the claim was still ours: a twin may have succeeded meanwhile, and one's own
        // success is never refused.
        const isOurs = await abandon(db, ours).catch((failure: unknown) => {
          void leases.giveBack(ours);
          throw failure;
        });
        if (isOurs) throw error;
        events.fenced();
        return await lookAgain(request, parked);
      }
      await leases.giveBack(ours);
      throw error;
    } finally {
      lease.end();
      waitingRoom.wake(request.tenant, request.key);
    }
  };

  return {
    leases,
    waitingRoom,
    lookUp: (tenant, key) => lookUp(db, settings, tenant, key),

    async peek(request) {
      const row = await lookUp(db, settings, request.tenant, request.key);
      return row && judge(row, request, false);
    },

    async run(request, work) {
      const { tenant, key, fingerprint, durable } = request;
      const deadlineMs = performance.now() + request.waitMs;
      let parked = false;
      for (let tries = 0; tries < maxTries; ) {
        const ours: Claim = { tenant, key, fencingToken: randomUUID() };
        const outcome = await claim({ ...ours, fingerprint, durable }).catch(giveBackIfSent(ours));
        if (outcome.kind === 'claimed') return await own(request, ours, outcome.owned, 'first', parked, work);
        if (outcome.kind === 'gone') await removeGone(db, settings, tenant, key);
        if (outcome.kind !== 'held') {
          tries += 1;
          continue;
        }
        const verdict = judge(outcome.row, request, parked);
        if (verdict === undefined) {
          const owned = await takeOver(db, settings, ours, outcome.row.fencingToken).catch(giveBackIfSent(ours));
          if (owned !== undefined) {
            events.takenOver();
            return await own(request, ours, owned, 'taken_over', parked, work);
          }
        } else if (verdict.outcome !== 'in_progress') {
          return verdict;
        }
        // Somebody owns it: wait where that was asked for, else say so at once.
        const leftMs = deadlineMs - performance.now();
        if (leftMs <= 0 || !(await waitingRoom.park(tenant, key, leftMs, request.clientGone)))
          return inProgress(parked);
        parked = true;
        if (request.clientGone.aborted) return inProgress(parked);
      }
      return inProgress(parked);
    },
  };
}

function inProgress(parked: boolean): KeyedRefusal {
  const refusal = problem('request_in_progress', { retryAfterMs: inProgressRetryMs });
  return { outcome: 'in_progress', problem: refusal, parked };
}
