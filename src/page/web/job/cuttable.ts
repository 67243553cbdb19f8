type Fetch = typeof globalThis.fetch;

/** What is told of each connection of a stream. */
export type ConnectionReport = {
  /** The answer has begun; `after` is the request's Last-Event-ID. */
  opened(after: number): void;
  /** There was no answer. */
  failed(): void;
};

/** A `fetch` whose stream can be cut, as a bad network would; the client that uses it does not know the difference. */
export function cuttable(fetch: Fetch, report: ConnectionReport): { readonly fetch: Fetch; cut(): void } {
  let open: AbortController | undefined;
  return {
    cut: () => open?.abort(),
    async fetch(input, init = {}) {
      const headers = new Headers(init.headers);
      if (headers.get('accept') !== 'text/event-stream') return await fetch(input, init);
      const own = new AbortController();
      open = own;
      const signal = init.signal == null ? own.signal : AbortSignal.any([own.signal, init.signal]);
      try {
        const answer = await fetch(input, { ...init, signal });
        if (answer.ok) report.opened(Number(headers.get('last-event-id') ?? 0));
        return answer;
      } catch (error) {
        if (init.signal?.aborted !== true) report.failed();
        throw error;
      }
    },
  };
}
