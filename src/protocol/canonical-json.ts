/**
 * The one text of a JSON value (RFC 8785): members sorted by UTF-16 code units, no white space, numbers as ECMAScript prints them, -0 as 0.
 * Deviation: a lone surrogate is written as its escape (`\ud800`) where the RFC ends in an error.
 * Throws a TypeError for what is no JSON (undefined, functions, NaN). Recursive: meant for values that `parseJson` has read.
 */
export function canonicalize(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value);
    case 'number':
      if (Number.isFinite(value)) return String(value);
      break;
    case 'boolean':
      return String(value);
    case 'object':
      if (value === null) return 'null';
      return Array.isArray(value) ? canonicalArray(value) : canonicalObject(value as Record<string, unknown>);
  }
  throw new TypeError(`Not a JSON value: ${String(value)}`);
}

function canonicalArray(items: readonly unknown[]): string {
  let text = '[';
  for (let i = 0; i < items.length; i++) text += (i === 0 ? '' : ',') + canonicalize(items[i]);
  return `${text}]`;
}

function canonicalObject(object: Record<string, unknown>): string {
  let text = '';
  // The default order of sort() is that of UTF-16 code units.
  for (const name of Object.keys(object).sort()) {
    text += `${text === '' ? '{' : ','}${JSON.stringify(name)}:${canonicalize(object[name])}`;
  }
  return text === '' ? '{}' : `${text}}`;
}
