import { parseHttpDate } from '../protocol/http-date.ts';
import { parseRetryAfter, parseRetryAfterMs } from '../protocol/retry-after.ts';

/** How patient a call is; all in milliseconds. */
export type Patience = {
  /** From the first try to the last one's end. */
  readonly budgetMs: number;
  /** One try: from connecting to the last byte of the answer. */
  readonly attemptTimeoutMs: number;
  /** Upper bound of the first back-off; doubles with each try. */
  readonly backOffMs: number;
  /** Upper bound of every back-off. */
  readonly maxBackOffMs: number;
};

/** Longer than a lease of 15 s, so that a call outlives the death of the server that ran it. */
export const defaultPatience: Patience = {
  budgetMs: 120_000,
  attemptTimeoutMs: 30_000,
  backOffMs: 250,
  maxBackOffMs: 8_000,
};

/** Share of a wait that the server asked for which is added at random, so that those who were told the same do not come back together. */
const spread = 0.1;

/** What became of one try, as far as timing asks. Header values are as they were received. */
export type Finding =
  | { readonly kind: 'no_answer' }
  | {
      readonly kind: 'answered';
      readonly status: number;
      readonly code?: string | undefined;
      readonly shouldRetry?: string | null;
      readonly retryAfterMs?: string | null;
      readonly retryAfter?: string | null;
      readonly date?: string | null;
    };

/** Where a call stands after a try. */
export type Standing = {
  /** Tries so far, at least 1. */
  readonly attempts: number;
  /** What is left of the budget, in milliseconds. */
  readonly budgetLeftMs: number;
  /** Until the key stops standing for this request, in milliseconds; Infinity for a request without a key. */
  readonly keyLeftMs: number;
};

/** What comes after a try. `final`: no retry can help. `budget`, `key_expired`: one might, but would come too late. */
export type NextTry =
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'stop'; readonly why: 'final' | 'budget' | 'key_expired' };

/**
 * Decides after a failed try. A wait that would end after the budget or the key is not begun.
 * `random` answers numbers from 0 up to 1; `nowMs` is the wall clock, asked only for a Retry-After date in an answer without Date.
 */
export function nextTry(
  finding: Finding,
  standing: Standing,
  patience: Patience,
  random: () => number,
  nowMs: number,
): NextTry {
  if (!mayHelp(finding)) return { kind: 'stop', why: 'final' };
  const asked = askedWaitMs(finding, nowMs);
  const ms =
    asked === undefined ? backOffMs(standing.attempts, patience, random) : Math.ceil(asked * (1 + spread * random()));
  if (ms >= standing.keyLeftMs) return { kind: 'stop', why: 'key_expired' };
  if (ms >= standing.budgetLeftMs) return { kind: 'stop', why: 'budget' };
  return { kind: 'wait', ms };
}

/** May the same request, sent again, end better? The server's word goes before its status. */
export function mayHelp(finding: Finding): boolean {
  if (finding.kind === 'no_answer') return true;
  if (finding.shouldRetry === 'false') return false;
  if (finding.shouldRetry === 'true') return true;
  const { status } = finding;
  if (status === 409) return finding.code === 'request_in_progress';
  return status === 408 || status === 429 || status >= 500;
}

/** The wait the server asks for, in milliseconds. A date is read against the server's own clock where the answer tells it. */
export function askedWaitMs(finding: Finding, nowMs: number): number | undefined {
  if (finding.kind === 'no_answer') return undefined;
  const exact = finding.retryAfterMs == null ? undefined : parseRetryAfterMs(finding.retryAfterMs);
  if (exact !== undefined || finding.retryAfter == null) return exact;
  const serverNowMs = finding.date == null ? undefined : parseHttpDate(finding.date, nowMs);
  return parseRetryAfter(finding.retryAfter, serverNowMs ?? nowMs);
}

/** Exponential back-off with full jitter: anything from 0 to a bound that doubles with each try. */
export function backOffMs(attempts: number, patience: Patience, random: () => number): number {
  const bound = Math.min(patience.maxBackOffMs, patience.backOffMs * 2 ** (attempts - 1));
  return Math.floor(random() * bound);
}
