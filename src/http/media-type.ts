/** What a Content-Type header says: the lower-case essence (`type/subtype`) and whether its parameters are acceptable. */
export type MediaType = { readonly essence: string; readonly isUtf8: boolean };

/** Parses a Content-Type (RFC 9110 §8.3.1). Undefined: missing or malformed. A charset other than UTF-8 clears `isUtf8`. */
export function parseMediaType(value: string | undefined): MediaType | undefined {
  if (value === undefined || value.length > 256) return undefined;
  const [head = '', ...parameters] = value.split(';');
  const essence = head.trim().toLowerCase();
  if (!/^[!#$%&'*+.^_`|~0-9a-z-]+\/[!#$%&'*+.^_`|~0-9a-z-]+$/.test(essence)) return undefined;
  const charsets = parameters
    .map((parameter) => parameter.trim().toLowerCase())
    .filter((parameter) => parameter.startsWith('charset='))
    .map((parameter) => parameter.slice('charset='.length).replace(/^"(.*)"$/, '$1'));
  return { essence, isUtf8: charsets.every((name) => name === 'utf-8' || name === 'utf8') };
}
