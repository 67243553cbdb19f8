import { createHash } from 'node:crypto';

/** The parts of a request that a key is bound to. Undefined: not there (a missing body differs from `{}` and `null`). */
export type RequestParts = {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly media_type: string | undefined;
  readonly if_match: string | undefined;
  readonly if_none_match: string | undefined;
  /** Canonical JSON (RFC 8785). */
  readonly body: string | undefined;
};

/** The name of a part, as `differs` lists it. */
export type Part = keyof RequestParts;

/**
 * The recipe's number is the first byte. A new recipe gets a new number and keeps the old one readable, so that keys
 * bound before an upgrade still recognise their retries.
 */
const recipe = 1;

/** Part → bytes of its digest. The body is what tells intents apart; the others are short strings of one tenant. */
const layout: readonly (readonly [Part, number])[] = [
  ['method', 8],
  ['path', 8],
  ['query', 8],
  ['media_type', 8],
  ['if_match', 8],
  ['if_none_match', 8],
  ['body', 32],
];
const length = 1 + layout.reduce((sum, [, size]) => sum + size, 0);

/** A request's fingerprint: one digest a part, so that a mismatch can say which parts differ without keeping them. */
export function fingerprint(parts: RequestParts): Buffer {
  const bytes = Buffer.alloc(length);
  bytes[0] = recipe;
  let offset = 1;
  for (const [part, size] of layout) {
    const value = parts[part];
    // An absent part stays zero; a digest that is all zero does not occur.
    if (value !== undefined) digest(value, size).copy(bytes, offset, 0, size);
    offset += size;
  }
  return bytes;
}

/** The parts in which two fingerprints differ; none: the same request. Undefined: stored by a recipe this build does not know. */
export function differingParts(stored: Uint8Array, sent: Uint8Array): Part[] | undefined {
  if (stored[0] !== recipe || stored.length !== length) return undefined;
  const differing: Part[] = [];
  let offset = 1;
  for (const [part, size] of layout) {
    if (Buffer.compare(stored.subarray(offset, offset + size), sent.subarray(offset, offset + size)) !== 0) {
      differing.push(part);
    }
    offset += size;
  }
  return differing;
}

/** Short parts repeat from request to request (the method, the path of a collection): their digests are remembered. */
const remembered = new Map<string, Buffer>();
const maxRemembered = 1_000;
const maxRememberedLength = 128;

function digest(value: string, size: number): Buffer {
  const isShort = size < 32 && value.length <= maxRememberedLength;
  const known = isShort ? remembered.get(value) : undefined;
  if (known !== undefined) return known;
  const made = createHash('sha256').update(value, 'utf8').digest();
  if (isShort && remembered.size < maxRemembered) remembered.set(value, made);
  return made;
}
