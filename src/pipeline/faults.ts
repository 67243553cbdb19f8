import { DatabaseUnavailable } from '../db/pool.ts';
import { isRetryable } from '../db/sqlstate.ts';
import { Problem, problem } from '../protocol/errors.ts';

/** Until the database may be back or a lock free, in milliseconds. */
const unavailableRetryMs = 1_000;

/** Any thrown value as a problem: typed ones as they are, the database away or busy as 503, all else as 500 with a fixed message. */
export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof DatabaseUnavailable || isRetryable(error)) {
    return problem('unavailable', { retryAfterMs: unavailableRetryMs, cause: error });
  }
  return problem('internal', { cause: error });
}
