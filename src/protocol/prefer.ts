import { isBlank, skipBlanks, trimBlanks } from './field-value.ts';

/** The preferences we know (RFC 7240): how long a duplicate may be parked, and whether a 412 shall carry the current document. */
export type Prefer = { readonly waitSeconds?: number; readonly returnRepresentation: boolean };

/** As RFC 9111 §1.2.2 caps delta-seconds. */
const maxSeconds = 2_147_483_648;

/** The preferences in the header's lines. What is malformed or unknown is ignored, and of several of one name the first counts. Linear time. */
export function parsePrefer(lines: readonly string[]): Prefer {
  const first = new Map<string, string>();
  for (const line of lines) {
    for (const member of splitQuoted(line, ',')) {
      // What follows the first semicolon are parameters; neither of our preferences has any.
      const preference = readPreference(splitQuoted(member, ';')[0] as string);
      if (preference !== undefined && !first.has(preference.name)) first.set(preference.name, preference.value);
    }
  }
  const wait = first.get('wait');
  const returnRepresentation = first.get('return')?.toLowerCase() === 'representation';
  if (wait === undefined || !/^[0-9]+$/.test(wait)) return { returnRepresentation };
  return { waitSeconds: Math.min(Number(wait), maxSeconds), returnRepresentation };
}

/** Splits at a separator outside quotes. A quote that is left open reaches to the end. */
function splitQuoted(text: string, separator: string): string[] {
  const parts: string[] = [];
  let start = 0;
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const character = text[i];
    if (character === '"') quoted = !quoted;
    else if (quoted && character === '\\') i++;
    else if (!quoted && character === separator) {
      parts.push(text.slice(start, i));
      start = i + 1;
    }
  }
  parts.push(text.slice(start));
  return parts;
}

/** `name`, `name=token` or `name="quoted"`, blanks allowed around each part; undefined for anything else and for names that are not ours. */
function readPreference(text: string): { name: 'wait' | 'return'; value: string } | undefined {
  const start = skipBlanks(text, 0);
  let end = start;
  while (end < text.length && text[end] !== '=' && !isBlank(text.charCodeAt(end))) end++;
  const name = text.slice(start, end).toLowerCase();
  if (name !== 'wait' && name !== 'return') return undefined;
  const equals = skipBlanks(text, end);
  if (equals === text.length) return { name, value: '' };
  if (text[equals] !== '=') return undefined;
  return { name, value: unquote(trimBlanks(text.slice(equals + 1))) };
}

function unquote(value: string): string {
  if (value.length < 2 || !value.startsWith('"') || !value.endsWith('"')) return value;
  return value.slice(1, -1).replace(/\\(.)/g, '$1');
}
