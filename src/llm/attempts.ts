/** Keys remembered; beyond them the one not seen for longest is forgotten, and would start again at 1. */
const MAX_KEYS = 10_000;

/** Counts the calls of each key, in bounded memory. `next` answers 1 for a key's first call. */
export function createAttempts(maxKeys: number = MAX_KEYS): { next(key: string): number } {
  const seen = new Map<string, number>();
  return {
    next(key) {
      const attempt = (seen.get(key) ?? 0) + 1;
      // Deleted first, so that the map's order is the order of last use.
      seen.delete(key);
      seen.set(key, attempt);
      if (seen.size > maxKeys) seen.delete(seen.keys().next().value!);
      return attempt;
    },
  };
}
