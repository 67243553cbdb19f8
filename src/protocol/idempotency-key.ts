import { trimBlanks } from './field-value.ts';

/** What a request's `Idempotency-Key` lines say. */
export type KeyHeader =
  | { readonly kind: 'absent' }
  | { readonly kind: 'invalid'; readonly reason: string }
  | { readonly kind: 'key'; readonly key: string };

/** Longest key, quotes not counted. Characters, each of them one byte. */
export const maxKeyLength = 255;

const invalid = (reason: string): KeyHeader => ({ kind: 'invalid', reason });

/** The key in the raw header lines: `k-1` and the IETF draft's `"k-1"` are the same key. */
export function parseIdempotencyKey(lines: readonly string[]): KeyHeader {
  if (lines.length === 0) return { kind: 'absent' };
  if (lines.length > 1) return invalid('Send one Idempotency-Key header, not several.');
  const value = trimBlanks(lines[0] as string);
  if (!value.startsWith('"')) return parseBare(value);
  if (value.length < 2 || !value.endsWith('"')) {
    return invalid('A quoted Idempotency-Key must end with its closing quote, and nothing may follow it.');
  }
  const key = value.slice(1, -1);
  if (key.includes('\\')) return invalid('A quoted Idempotency-Key must not contain a backslash.');
  return parseBare(key);
}

function parseBare(key: string): KeyHeader {
  if (key === '') return invalid('The Idempotency-Key must not be empty.');
  if (key.length > maxKeyLength) return invalid(`The Idempotency-Key must have at most ${maxKeyLength} characters.`);
  for (let i = 0; i < key.length; i++) {
    const unit = key.charCodeAt(i);
    if (unit < 0x21 || unit > 0x7e || unit === 0x22) {
      return invalid('The Idempotency-Key must be visible ASCII without blanks and quotes.');
    }
  }
  return { kind: 'key', key };
}

/** The header value for a key: the bare form, which every server takes. Throws a RangeError for what no server may be sent as a key. */
export function formatIdempotencyKey(key: string): string {
  const parsed = parseBare(key);
  if (parsed.kind === 'invalid') throw new RangeError(parsed.reason);
  return key;
}
