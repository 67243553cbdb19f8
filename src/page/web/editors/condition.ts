/** What an editor says of the version it means to change. */
export type Condition = 'tag' | 'any' | 'none';

/** A `fetch` that leaves out If-Match while `isMissing` says so: the client of the project can't forget it. */
export function withoutIfMatch(fetch: typeof globalThis.fetch, isMissing: () => boolean): typeof globalThis.fetch {
  return (input, init) => {
    if (!isMissing()) return fetch(input, init);
    const headers = new Headers(init?.headers);
    headers.delete('if-match');
    return fetch(input, { ...init, headers });
  };
}
