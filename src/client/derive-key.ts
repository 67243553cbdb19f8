/**
 * An idempotency key from stable ids, the same for the same parts in every process: 43 characters of base64url.
 *
 * For callers who cannot keep an intent but know what they are doing it for: an agent's run id and the number of its step, a
 * message's id, a billing month. Never put wording into it: a model says the same thing in other words on the next try, and the
 * order would be placed once per wording. (Two different requests under one key are told apart by the server: 409
 * `idempotency_key_reused`, nothing is run.)
 *
 * The parts do not run into one another: ('a', 'bc') and ('ab', 'c') differ. 1 and '1' are the same part. Throws a TypeError for no
 * parts, for fractions and for lone surrogates.
 */
export async function deriveKey(...parts: readonly (string | number)[]): Promise<string> {
  if (parts.length === 0) throw new TypeError('A key is derived from at least one part.');
  const digest = await crypto.subtle.digest('SHA-256', lengthPrefixed(parts.map(bytesOf)));
  return btoa(String.fromCharCode(...new Uint8Array(digest)))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
}

function bytesOf(part: string | number): Uint8Array {
  if (typeof part === 'number' ? !Number.isSafeInteger(part) : !part.isWellFormed()) {
    throw new TypeError(
      `A part of a key must be well-formed text or a whole number, not ${String(part).toWellFormed()}.`,
    );
  }
  return new TextEncoder().encode(String(part));
}

/** Each part behind its length in four bytes. */
function lengthPrefixed(parts: readonly Uint8Array[]): ArrayBuffer {
  const buffer = new ArrayBuffer(parts.reduce((sum, part) => sum + 4 + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    new DataView(buffer).setUint32(offset, part.length);
    new Uint8Array(buffer).set(part, offset + 4);
    offset += 4 + part.length;
  }
  return buffer;
}
