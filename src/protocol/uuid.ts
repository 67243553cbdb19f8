/** Random bytes that one id takes. */
export const idRandomBytes = 10;

/** A UUIDv7 (RFC 9562 §5.7) as 32 lower-case hex digits: 48 bits of milliseconds since 1970, then version, variant and 74 of the 80 random bits. Sorts by time. */
export function formatUuidV7(ms: number, random: Uint8Array): string {
  if (!Number.isSafeInteger(ms) || ms < 0 || ms >= 2 ** 48)
    throw new RangeError('A UUIDv7 needs whole milliseconds below 2^48.');
  if (random.length !== idRandomBytes) throw new RangeError(`A UUIDv7 needs ${idRandomBytes} random bytes.`);
  let text = ms.toString(16).padStart(12, '0');
  for (let i = 0; i < idRandomBytes; i++) {
    let byte = random[i] as number;
    if (i === 0) byte = (byte & 0x0f) | 0x70;
    if (i === 2) byte = (byte & 0x3f) | 0x80;
    text += byte.toString(16).padStart(2, '0');
  }
  return text;
}

/** An id as it goes over the wire: `ord_` and 32 hex digits. Takes a UUID with or without hyphens. */
export function formatId(prefix: string, uuid: string): string {
  return `${prefix}_${uuid.replaceAll('-', '')}`;
}

/** The 32 hex digits behind `ord_…`, or undefined unless the text is exactly what `formatId` makes: no capitals, no hyphens. */
export function parseId(prefix: string, text: string): string | undefined {
  const head = `${prefix}_`;
  if (!text.startsWith(head)) return undefined;
  const hex = text.slice(head.length);
  return /^[0-9a-f]{32}$/.test(hex) ? hex : undefined;
}
