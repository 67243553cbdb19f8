import { errorEntry, isRetriedBySdks, keyActionOf, type Problem } from './errors.ts';
import { formatRetryAfter } from './retry-after.ts';

/** An error as an answer, before its body is bytes. */
export type ProblemAnswer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
};

/** What an error's answer says of its request. On keyed routes the body tells what to do with the key. */
export type ProblemContext = { readonly traceId?: string | undefined; readonly isKeyed: boolean };

/** What a caller waits where waiting helps and nobody knows how long. Milliseconds. */
const usualWaitMs = 1_000;

/** An error as `application/problem+json` (RFC 9457). */
export function formatProblem(problem: Problem, { traceId, isKeyed }: ProblemContext): ProblemAnswer {
  const { members, headers, retryAfterMs, shouldRetry, keyAction } = problem.options;
  const mayHelp = shouldRetry ?? errorEntry(problem.code).retry !== 'no';
  const waitMs = retryAfterMs ?? (errorEntry(problem.code).retry === 'wait' ? usualWaitMs : undefined);
  const wait = mayHelp && waitMs !== undefined ? formatRetryAfter(waitMs) : undefined;
  return {
    status: problem.status,
    headers: {
      'Content-Type': 'application/problem+json',
      'Cache-Control': 'no-store',
      ...(wait && { 'Retry-After': String(wait.seconds), 'retry-after-ms': String(wait.ms) }),
      ...(!mayHelp && isRetriedBySdks(problem.status) ? { 'x-should-retry': 'false' } : {}),
      ...headers,
    },
    body: {
      type: `/docs/errors#${problem.code}`,
      status: problem.status,
      code: problem.code,
      message: problem.message,
      ...(traceId === undefined ? {} : { trace_id: traceId }),
      ...(isKeyed ? { key_action: keyAction ?? keyActionOf(problem.code) } : {}),
      ...members,
    },
  };
}
