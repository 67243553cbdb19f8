import { errorEntry, isRetriedBySdks, keyActionOf, type Problem } from '../protocol/errors.ts';
import { formatRetryAfter } from '../protocol/retry-after.ts';
import type { Reply } from './reply.ts';

/** An error as `application/problem+json` (RFC 9457). On keyed routes the body says what to do with the key. */
export function problemReply(problem: Problem, traceId: string | undefined, isKeyed: boolean): Reply {
  const { members, headers, retryAfterMs, shouldRetry, keyAction } = problem.options;
  const mayHelp = shouldRetry ?? errorEntry(problem.code).retry !== 'no';
  const wait = mayHelp && retryAfterMs !== undefined ? formatRetryAfter(retryAfterMs) : undefined;
  const body = {
    type: `/docs/errors#${problem.code}`,
    status: problem.status,
    code: problem.code,
    message: problem.message,
    ...(traceId === undefined ? {} : { trace_id: traceId }),
    ...(isKeyed ? { key_action: keyAction ?? keyActionOf(problem.code) } : {}),
    ...members,
  };
  return {
    status: problem.status,
    headers: {
      'Content-Type': 'application/problem+json',
      'Cache-Control': 'no-store',
      ...(wait && { 'Retry-After': String(wait.seconds), 'retry-after-ms': String(wait.ms) }),
      ...(!mayHelp && isRetriedBySdks(problem.status) ? { 'x-should-retry': 'false' } : {}),
      ...headers,
    },
    body: Buffer.from(JSON.stringify(body)),
  };
}
