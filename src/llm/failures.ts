import { parseRetryAfter, parseRetryAfterMs } from '../protocol/retry-after.ts';
import { ModelError } from './provider.ts';

/** Longer than a minute no client of ours is asked to wait, and no worker waits in one go. */
const MAX_RETRY_AFTER_MS = 60_000;

/** What of an error answer decides over a retry. */
export type FailedAnswer = {
  readonly status: number;
  /** The header fields `retry-after`, `retry-after-ms` and `x-should-retry`, where there. */
  readonly headers?: { readonly [name: string]: string | string[] | undefined };
  readonly detail?: string;
};

/**
 * Reads an error status: 408, 425, 429 and 5xx may be sent again, every other may not, unless the provider itself says
 * otherwise (`x-should-retry`; a `Retry-After` on 409, which a provider that honours our key answers while its first try runs).
 * 504 is a gateway's "no answer came in time": its outcome is unknown.
 */
export function failureOfStatus({ status, headers = {}, detail }: FailedAnswer, nowMs: number): ModelError {
  const retryAfterMs = readRetryAfter(headers, nowMs);
  const hint = headers['x-should-retry'];
  const again = hint === 'true' || (hint !== 'false' && isRetryable(status, retryAfterMs));
  return new ModelError({
    kind: status === 504 ? 'unknown' : again ? 'retryable' : 'final',
    code: codeOf(status, again),
    message: `The model provider answered with status ${status}.`,
    status,
    retryAfterMs,
    detail,
  });
}

/** The provider said in mid-stream that it failed: an answer came, and it is a failure. */
export function failedInMidStream(detail?: string): ModelError {
  const message = 'The model provider broke off with an error.';
  return new ModelError({ kind: 'retryable', code: 'upstream_failed', message, detail });
}

/** The call went out and the connection closed before a proper end. */
export function cutOff(cause?: unknown): ModelError {
  const message = 'The connection to the model provider closed before its answer ended.';
  return new ModelError({ kind: 'unknown', code: 'upstream_failed', message, cause });
}

/** There was no connection, so nothing was sent and nothing was paid. */
export function notReached(cause?: unknown): ModelError {
  const message = 'The model provider cannot be reached.';
  return new ModelError({ kind: 'retryable', code: 'upstream_failed', message, cause });
}

function isRetryable(status: number, retryAfterMs: number | undefined): boolean {
  if (status === 409) return retryAfterMs !== undefined;
  return status === 408 || status === 425 || status === 429 || status >= 500;
}

function codeOf(status: number, again: boolean) {
  if (status === 408 || status === 504) return 'upstream_timeout';
  // 529: "overloaded" at several providers. 409, 425: their first try is not through yet.
  const busy = status === 429 || status === 503 || status === 529 || status === 409 || status === 425;
  return busy && again ? 'upstream_busy' : 'upstream_failed';
}

function readRetryAfter(headers: NonNullable<FailedAnswer['headers']>, nowMs: number): number | undefined {
  const exact = headers['retry-after-ms'];
  const coarse = headers['retry-after'];
  const ms =
    (typeof exact === 'string' ? parseRetryAfterMs(exact) : undefined) ??
    (typeof coarse === 'string' ? parseRetryAfter(coarse, nowMs) : undefined);
  return ms === undefined ? undefined : Math.min(Math.ceil(ms), MAX_RETRY_AFTER_MS);
}
