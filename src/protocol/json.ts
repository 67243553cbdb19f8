import { findJsonFault, maxJsonDepth } from './json-fault.ts';

/** A value, or one sentence for the caller why there is none. */
export type JsonResult =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'invalid'; readonly reason: string };

// With ignoreBOM the mark stays in the text, where it is seen and refused.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Reads a body as JSON in UTF-8; refuses what `parseJsonText` refuses, an empty body, a byte order mark and bytes that are no UTF-8. */
export function parseJson(bytes: Uint8Array): JsonResult {
  if (bytes.length === 0) return { kind: 'invalid', reason: 'The body is empty; send a JSON value.' };
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    return { kind: 'invalid', reason: 'The body is not valid UTF-8.' };
  }
  if (text.startsWith('\ufeff')) {
    return { kind: 'invalid', reason: 'The body begins with a byte order mark; send UTF-8 without one.' };
  }
  return parseJsonText(text);
}

/**
 * Reads a text that is JSON (RFC 8259) in exactly one way. Refused besides bad syntax: a member named twice in one object (compared after
 * unescaping), nesting deeper than 64, and numbers that a double cannot hold as they are meant (beyond ±(2^53 − 1), infinite).
 * `__proto__` becomes an ordinary own member. Linear time.
 */
export function parseJsonText(text: string): JsonResult {
  const members = countMembers(text);
  if (members !== undefined) {
    try {
      const value: unknown = JSON.parse(text);
      // The text names more members than the value has: a name came twice and the later value hid the earlier one.
      if (membersOf(value) === members) return { kind: 'value', value };
    } catch {
      // Explained below, where the offset is known.
    }
  }
  return { kind: 'invalid', reason: findJsonFault(text) ?? 'The body is not valid JSON.' };
}

/** The members that a JSON text names: its colons outside strings. Undefined when it nests too deep or a string is left open. */
function countMembers(text: string): number | undefined {
  let depth = 0;
  let members = 0;
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case 0x22: {
        i = endOfString(text, i);
        if (i === -1) return undefined;
        break;
      }
      case 0x7b:
      case 0x5b:
        if (++depth > maxJsonDepth) return undefined;
        break;
      case 0x7d:
      case 0x5d:
        depth--;
        break;
      case 0x3a:
        members++;
        break;
    }
  }
  return members;
}

/** The index of the quote that closes the string opened at `open`, or -1. A quote behind an odd number of backslashes is escaped. */
function endOfString(text: string, open: number): number {
  for (let end = text.indexOf('"', open + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let before = end - 1;
    while (text.charCodeAt(before) === 0x5c) before--;
    if ((end - before) % 2 === 1) return end;
  }
  return -1;
}

/** The members of a value and all it holds; NaN when a number in it is out of range. The depth is known to be bounded. */
function membersOf(value: unknown): number {
  if (typeof value === 'number') return Math.abs(value) <= Number.MAX_SAFE_INTEGER ? 0 : Number.NaN;
  if (typeof value !== 'object' || value === null) return 0;
  let members = 0;
  if (Array.isArray(value)) {
    for (const item of value) members += membersOf(item);
    return members;
  }
  for (const name of Object.keys(value)) members += 1 + membersOf((value as Record<string, unknown>)[name]);
  return members;
}
