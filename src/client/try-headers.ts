import { formatTraceparent } from '../protocol/trace-context.ts';

/** Longest wait that a duplicate asks the server for while its twin runs: less than proxies wait for a silent server. Milliseconds. */
const maxParkedMs = 10_000;

/** What the headers of one try say besides those of its request; the server compares none of them when a key comes again. */
export type TryFacts = {
  readonly token: string;
  readonly traceId: string;
  readonly key: string | undefined;
  /** The tag of the remembered copy. */
  readonly remembered: string | undefined;
  /** How long this try may last, in milliseconds. */
  readonly limitMs: number;
  /** Ask a 412 for the document that is there. */
  readonly wantsCurrent: boolean;
};

/** Headers of one try. */
export function tryHeaders({
  token,
  traceId,
  key,
  remembered,
  limitMs,
  wantsCurrent,
}: TryFacts): Record<string, string> {
  // A twin that still runs is waited for on the server: one request instead of a poll.
  const waitSeconds = key === undefined ? 0 : Math.floor(Math.min(maxParkedMs, limitMs / 2) / 1_000);
  const prefer = [
    ...(waitSeconds > 0 ? [`wait=${waitSeconds}`] : []),
    ...(wantsCurrent ? ['return=representation'] : []),
  ];
  return {
    ...bearer(token, traceId),
    ...(key === undefined ? {} : { 'idempotency-key': key }),
    ...(remembered === undefined ? {} : { 'if-none-match': remembered }),
    ...(prefer.length === 0 ? {} : { prefer: prefer.join(', ') }),
  };
}

/** Who asks, and in which trace: one for all tries of a call, so that the server's log shows them together. */
export function bearer(token: string, traceId: string): Record<string, string> {
  return {
    authorization: `Bearer ${token}`,
    traceparent: formatTraceparent({ traceId, parentId: randomHex(8), flags: 1 }),
  };
}

/** A fresh trace id. */
export function createTraceId(): string {
  return randomHex(16);
}

function randomHex(bytes: number): string {
  const random = crypto.getRandomValues(new Uint8Array(bytes));
  return Array.from(random, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
