import { isRecord, ownValue } from './json-object.ts';

/**
 * A sentence for the caller whose refused patch looks like an operation relative to the current value (`"+1"`, `$inc`, JSON Patch), or undefined.
 * Ask it only about a patch that was refused: "+1" is a fine title.
 */
export function relativeOperationHint(patch: unknown): string | undefined {
  if (Array.isArray(patch) && patch.some((operation) => isRecord(operation) && Object.hasOwn(operation, 'op'))) {
    return 'This looks like JSON Patch (RFC 6902), which is not taken: send a merge patch (RFC 7396) with the new values themselves.';
  }
  const open: unknown[] = [patch];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (!isRecord(node)) continue;
    for (const name of Object.keys(node)) {
      const value = ownValue(node, name);
      if (name.startsWith('$')) {
        return `${quoted(name)} is an operator, and a merge patch has none: read the document, compute the new value, and send that with If-Match.`;
      }
      if (typeof value === 'string' && /^ ?(\+\+|--|[+*/-]=? ?[0-9]+(\.[0-9]+)?)$/.test(value)) {
        return `${quoted(value)} is relative, and a merge patch is absolute: read the document, compute the new value, and send that with If-Match.`;
      }
      open.push(value);
    }
  }
  return undefined;
}

/** Bounded: the hint goes into an error's message. */
function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 40));
}
