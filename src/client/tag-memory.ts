/** An answer that is kept, with the tag that says whether it still holds. */
export type Remembered = { readonly tag: string; readonly status: number; readonly text: string };

/** Bounds of what is kept. */
export type MemoryLimits = { readonly maxEntries: number; readonly maxBytes: number };

/** Enough for the pages of an app that is open; not a store. */
export const defaultMemoryLimits: MemoryLimits = { maxEntries: 500, maxBytes: 8_388_608 };

/** Answers by URL and token. What was not used for longest goes first. */
export type TagMemory = {
  find(token: string, url: string): Remembered | undefined;
  keep(token: string, url: string, answer: Remembered): void;
  forget(token: string, url: string): void;
};

/**
 * An empty memory. The token is part of every entry's name, whole: after a change of token nothing of the one before can be
 * shown, nor be told to the server. Texts are kept, not values, so that no caller can change what the next one gets.
 */
export function createTagMemory(limits: MemoryLimits = defaultMemoryLimits): TagMemory {
  // A Map goes in order of insertion: an entry that is used is put at the end again.
  const entries = new Map<string, Remembered>();
  let bytes = 0;

  const drop = (name: string) => {
    const entry = entries.get(name);
    if (entry === undefined) return;
    entries.delete(name);
    bytes -= sizeOf(name, entry);
  };
  // No URL and no token holds a line break.
  const nameOf = (token: string, url: string) => `${token}\n${url}`;

  return {
    find(token, url) {
      const name = nameOf(token, url);
      const entry = entries.get(name);
      if (entry === undefined) return undefined;
      entries.delete(name);
      entries.set(name, entry);
      return entry;
    },
    keep(token, url, answer) {
      const name = nameOf(token, url);
      drop(name);
      entries.set(name, answer);
      bytes += sizeOf(name, answer);
      for (const oldest of entries.keys()) {
        if (entries.size <= limits.maxEntries && bytes <= limits.maxBytes) break;
        drop(oldest);
      }
    },
    forget: (token, url) => drop(nameOf(token, url)),
  };
}

/** Bytes that an entry takes at most: two per UTF-16 unit. */
function sizeOf(name: string, { tag, text }: Remembered): number {
  return 2 * (name.length + tag.length + text.length);
}
