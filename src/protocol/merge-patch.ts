import { isRecord, ownValue, setOwn } from './json-object.ts';

/**
 * The target with the patch applied (RFC 7396): null removes, objects merge, anything else replaces.
 * Neither argument is changed, but the result shares values with both. No recursion, and `__proto__` is a member like any other.
 */
export function applyMergePatch(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const result = copy(target);
  const open: [into: Record<string, unknown>, from: Record<string, unknown>][] = [[result, patch]];
  for (let pair = open.pop(); pair !== undefined; pair = open.pop()) {
    const [into, from] = pair;
    for (const name of Object.keys(from)) {
      const value = ownValue(from, name);
      if (value === null) {
        delete into[name];
      } else if (isRecord(value)) {
        const child = copy(ownValue(into, name));
        setOwn(into, name, child);
        open.push([child, value]);
      } else {
        setOwn(into, name, value);
      }
    }
  }
  return result;
}

function copy(value: unknown): Record<string, unknown> {
  return isRecord(value) ? { ...value } : {};
}
