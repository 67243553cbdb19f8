/** Time as the client sees it; tests bring their own. */
export type Clock = {
  /** Milliseconds since 1970: for lifetimes that outlast the process. */
  wallMs(): number;
  /** Milliseconds that only go forward: for budgets. */
  steadyMs(): number;
  /** Resolves after so many milliseconds, or at once when the signal aborts. */
  sleep(ms: number, signal: AbortSignal | undefined): Promise<void>;
};

/** The clock of the machine. */
export const systemClock: Clock = {
  wallMs: () => Date.now(),
  steadyMs: () => performance.now(),
  sleep(ms, signal) {
    if (signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      signal?.addEventListener('abort', end, { once: true });
    });
  },
};

/** The promise's end, or a rejection with the signal's reason if that comes first. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise<T>((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
