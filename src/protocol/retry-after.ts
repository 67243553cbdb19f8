import { trimBlanks } from './field-value.ts';
import { parseHttpDate } from './http-date.ts';

/** A minute less a millisecond: many generated SDKs (older openai-node among them) drop a wait of 60,000 ms and more and back off as they like. */
const maxMs = 59_999;

/** As RFC 9111 §1.2.2 caps delta-seconds. */
const maxSeconds = 2_147_483_648;

/** The values of `Retry-After` (1 to 60, rounded up) and `retry-after-ms` for a wait in milliseconds. */
export function formatRetryAfter(waitMs: number): { readonly seconds: number; readonly ms: number } {
  const ms = Math.ceil(Math.min(Math.max(waitMs, 1), maxMs));
  return { seconds: Math.ceil(ms / 1_000), ms };
}

/** The wait in milliseconds that a `Retry-After` value asks for (RFC 9110 §10.2.3: seconds or an HTTP date; a past date is 0), or undefined when it is neither. */
export function parseRetryAfter(value: string, nowMs: number): number | undefined {
  const text = trimBlanks(value);
  if (/^[0-9]+$/.test(text)) return Math.min(Number(text), maxSeconds) * 1_000;
  const dateMs = parseHttpDate(text, nowMs);
  return dateMs === undefined ? undefined : Math.max(0, dateMs - nowMs);
}

/** The wait in milliseconds that a `retry-after-ms` value asks for, or undefined when it is no plain non-negative number. */
export function parseRetryAfterMs(value: string): number | undefined {
  const text = trimBlanks(value);
  return /^[0-9]+(\.[0-9]+)?$/.test(text) ? Math.min(Number(text), maxSeconds * 1_000) : undefined;
}
