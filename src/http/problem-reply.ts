import type { Problem } from '../protocol/errors.ts';
import { formatProblem } from '../protocol/problem.ts';
import type { Reply } from './reply.ts';

/** An error as `application/problem+json` (RFC 9457), in bytes. On keyed routes the body says what to do with the key. */
export function problemReply(problem: Problem, traceId: string | undefined, isKeyed: boolean): Reply {
  const { status, headers, body } = formatProblem(problem, { traceId, isKeyed });
  return { status, headers, body: Buffer.from(JSON.stringify(body)) };
}
