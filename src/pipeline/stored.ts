import type { Answer } from '../handler.ts';
import { isBodiless, type Reply } from '../http/reply.ts';
import type { StoredAnswer } from '../idempotency/claims.ts';
import type { KeyedAnswer } from '../idempotency/keyed.ts';

/** Headers that are stored and replayed; everything else belongs to one connection or one try. */
const storedHeaders = ['Content-Type', 'Location', 'Link', 'ETag', 'Content-Location', 'Cache-Control'] as const;

/** Longest wait that `Prefer: wait` is granted, in seconds. */
const maxWaitSeconds = 30;

/** An answer as it is kept: the bytes that every copy of the request will get. */
export function storedAnswer(answer: Answer): StoredAnswer {
  const headers: Record<string, string> = {};
  const hasBody = !isBodiless(answer.status) && answer.body !== undefined;
  if (hasBody) headers['Content-Type'] = 'application/json';
  headers['Cache-Control'] = 'no-store';
  for (const name of storedHeaders) {
    const value = answer.headers?.[name];
    if (value !== undefined) headers[name] = value;
  }
  return { status: answer.status, headers, body: hasBody ? Buffer.from(JSON.stringify(answer.body)) : null };
}

/** How long a duplicate that asks for it is parked. */
export function grantedWaitMs(waitSeconds: number | undefined): number {
  return Math.min(waitSeconds ?? 0, maxWaitSeconds) * 1_000;
}

/** What an answer says of having been parked. */
export function waitHeader(waitedSeconds: number | undefined): Record<string, string> {
  return waitedSeconds === undefined ? {} : { 'Preference-Applied': `wait=${waitedSeconds}` };
}

/** The answer of a key, stored just now or long ago. `waitedSeconds`: what a parked duplicate was granted. */
export function keyedReply({ answer, outcome, expiresAt }: KeyedAnswer, waitedSeconds: number | undefined): Reply {
  return {
    status: answer.status,
    headers: {
      ...answer.headers,
      'Idempotent-Replayed': String(outcome === 'replayed'),
      'Idempotency-Expires': expiresAt.toISOString(),
      ...waitHeader(waitedSeconds),
    },
    body: answer.body,
  };
}
