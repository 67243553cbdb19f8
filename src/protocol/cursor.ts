/** Longest cursor, made or read. Characters. */
export const maxCursorLength = 512;

/**
 * An opaque cursor for a place in a list. `binding` names all it may be used with (tenant, route, filters); `mac` is a keyed digest in
 * base64url, so that a client can neither make a cursor nor move one to another list. Throws a RangeError beyond 512 characters.
 */
export function formatCursor(binding: string, position: readonly string[], mac: (text: string) => string): string {
  const payload = toBase64Url(JSON.stringify(position));
  const cursor = `${payload}.${mac(`${payload}.${binding}`)}`;
  if (cursor.length > maxCursorLength)
    throw new RangeError(`A cursor must have at most ${maxCursorLength} characters.`);
  return cursor;
}

/** The position in a cursor, or undefined unless `formatCursor` made exactly this text for this binding with this `mac`. */
export function parseCursor(
  text: string,
  binding: string,
  mac: (text: string) => string,
): readonly string[] | undefined {
  if (text.length > maxCursorLength) return undefined;
  const dot = text.indexOf('.');
  if (dot === -1) return undefined;
  const payload = text.slice(0, dot);
  if (!equalsInConstantTime(text.slice(dot + 1), mac(`${payload}.${binding}`))) return undefined;
  // The check holds, so this is our own text.
  return JSON.parse(fromBase64Url(payload)) as string[];
}

/** How long it takes says nothing about where two texts of one length differ. */
function equalsInConstantTime(a: string, b: string): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let i = 0; i < a.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i);
  return difference === 0;
}

function toBase64Url(text: string): string {
  const bytes = new TextEncoder().encode(text);
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
}

function fromBase64Url(text: string): string {
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  return new TextDecoder().decode(Uint8Array.from(binary, (character) => character.charCodeAt(0)));
}
