/** A `fetch` that leaves out a header while `isLeftOut` says so, to show what the client of the project can't forget. */
export function leaveOut(
  header: string,
  fetch: typeof globalThis.fetch,
  isLeftOut: () => boolean,
): typeof globalThis.fetch {
  return (input, init) => {
    if (!isLeftOut()) return fetch(input, init);
    const headers = new Headers(init?.headers);
    headers.delete(header);
    return fetch(input, { ...init, headers });
  };
}
