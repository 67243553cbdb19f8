import { parseHttpDate } from '../protocol/http-date.ts';
import type { Answer } from './attempt.ts';
import type { AnswerFacts } from './call-types.ts';
import type { CallFacts } from './failure.ts';
import type { Remembered, TagMemory } from './tag-memory.ts';

/** A success, not typed by its procedure yet. */
export type Performed = { readonly status: number; readonly body: unknown } & AnswerFacts;

/** A 2xx, or a 304 that confirms what is remembered. */
export function success(answer: Answer, facts: CallFacts, remembered?: Remembered): Performed {
  const { headers } = answer;
  return {
    status: remembered?.status ?? answer.status,
    body: remembered === undefined ? answer.value : (JSON.parse(remembered.text) as unknown),
    headers,
    tag: remembered?.tag ?? headers.get('etag') ?? undefined,
    replayed: headers.get('idempotent-replayed') === 'true',
    fromMemory: remembered !== undefined,
    key: facts.key,
    attempts: facts.attempts,
    traceId: headers.get('x-trace-id') ?? facts.traceId,
  };
}

/** Keeps a read's answer if it has a tag and nothing forbids to store it. */
export function keepInMemory(memory: TagMemory, token: string, url: string, { status, headers, text }: Answer): void {
  const tag = headers.get('etag');
  const forbidden = /\bno-store\b/i.test(headers.get('cache-control') ?? '');
  if (status === 200 && tag !== null && !forbidden) memory.keep(token, url, { tag, status, text });
}

/** When the key's lifetime ends by this machine's clock, if the answer tells: counted from the server's own Date. */
export function keyEndOf(headers: Headers | undefined, nowMs: number): number | undefined {
  const expiresMs = Date.parse(headers?.get('idempotency-expires') ?? '');
  if (Number.isNaN(expiresMs)) return undefined;
  const serverNowMs = parseHttpDate(headers?.get('date') ?? '', nowMs);
  return nowMs + (expiresMs - (serverNowMs ?? nowMs));
}
