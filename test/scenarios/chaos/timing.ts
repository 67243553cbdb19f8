import type { IntentKind } from './history.ts';

/*
 * How long things last in a run, in milliseconds: short, so that every window is gone through often. What is held to its bound
 * is what the product promises in these terms.
 */

/** A wait for a connection, and by itself a statement or transaction (`DB_QUERY_TIMEOUT_MS`). */
export const queryTimeoutMs = 1_000;
/** A claim and a job's lease (`IDEMPOTENCY_LEASE_MS`, `JOB_LEASE_MS`). */
export const leaseMs = 1_500;
/** A model call (`LLM_TIMEOUT_MS`). */
export const modelTimeoutMs = 1_500;
/** Longer than any lease: how long a process or Postgres is stopped. */
export const stopMs = 2_200;
/** Between sweeps. */
export const sweepMs = 250;

/** Database work of a request at most: each piece waits for a connection and then runs. */
const pieceMs = 2 * queryTimeoutMs;
/** Claim, take-over, work, look-up, release. */
const keyedPieces = 5;
/** Besides: reading the document, hold, look, settlement. */
const rewritePieces = 4;

/** What a machine that does everything at once may add. */
const slackMs = 1_000;

/**
 * How long a client waits for one answer. Half of it, it asks the server to keep a duplicate waiting (`Prefer: wait`), so the
 * other half is what an answer may take at most when nothing is stopped.
 */
export function limitMsOf(kind: IntentKind): number {
  const pieces = keyedPieces + (kind === 'rewrite' ? rewritePieces : 0);
  return 2 * (pieces * pieceMs + slackMs + (kind === 'rewrite' ? modelTimeoutMs : 0));
}

/** Longest time an answer may take: its limit. */
export const boundMsOf = limitMsOf;

/** The environment of the servers of a run. */
export const serverEnv: Readonly<Record<string, string>> = {
  IDEMPOTENCY_LEASE_MS: String(leaseMs),
  IDEMPOTENCY_SWEEP_MS: String(sweepMs),
  JOB_LEASE_MS: String(leaseMs),
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
