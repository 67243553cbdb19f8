import type { IntentKind } from './history.ts';

/*
 * How long things last in a run, in milliseconds: short, so that every window is gone through often. What is held to its bound
 * is what the product promises in these terms.
 */

/** A wait for a connection, and by itself a statement or transaction (`DB_QUERY_TIMEOUT_MS`). */
export const queryTimeoutMs = 2_000;
/** A claim (`IDEMPOTENCY_LEASE_MS`): shorter than a statement may take, so that a late owner still has a connection to try on. */
export const leaseMs = 700;
/** How long an owner stands still in a narrow window: longer than its lease, and not so long that its statement is given up. */
export const windowStopMs = 1_600;
/** How long a process or Postgres stands still at any moment: longer than every lease. */
export const stopMs = 2_400;
/** A job's lease (`JOB_LEASE_MS`). */
export const jobLeaseMs = 1_500;
/** A model call (`LLM_TIMEOUT_MS`). */
export const modelTimeoutMs = 1_500;
/** Between sweeps. */
export const sweepMs = 250;

/** Database work of a request at most: each piece waits for a connection and then runs. */
const pieceMs = 2 * queryTimeoutMs;
/** Claim, take-over, work, look-up, release. */
const keyedPieces = 5;
/** Besides: reading the document, hold, look, settlement. */
const rewritePieces = 4;
/** The longest that a client asks a duplicate to be kept waiting (`Prefer: wait`). */
const parkedMs = 10_000;
/** What a machine that does everything at once may add. */
const slackMs = 1_000;

/** The longest an answer may take when nothing stands still, and how long a patient client waits for one. */
export function boundMsOf(kind: IntentKind): number {
  const pieces = keyedPieces + (kind === 'rewrite' ? rewritePieces : 0);
  return pieces * pieceMs + parkedMs + slackMs + (kind === 'rewrite' ? modelTimeoutMs : 0);
}

/** How long a client tries before it leaves an intent as it is: long enough to wait for one answer to its bound. */
export const budgetMs = 60_000;

/** The environment of the servers of a run. */
export const serverEnv: Readonly<Record<string, string>> = {
  IDEMPOTENCY_LEASE_MS: String(leaseMs),
  IDEMPOTENCY_SWEEP_MS: String(sweepMs),
  JOB_LEASE_MS: String(jobLeaseMs),
  JOB_MAX_ATTEMPTS: '4',
  WORKERS: '4',
  DB_POOL_MAX: '6',
  DB_QUERY_TIMEOUT_MS: String(queryTimeoutMs),
  LLM_TIMEOUT_MS: String(modelTimeoutMs),
  LLM_SIM_LATENCY_MS: '100',
  LLM_SIM_TOKENS: '12',
  RATE_LIMIT_RPM: '1000000',
  RATE_LIMIT_BURST: '1000000',
  SHUTDOWN_GRACE_MS: '1500',
};
