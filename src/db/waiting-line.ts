/** First come, first served, for at most a given time. */
export type WaitingLine<T> = {
  /** How many wait. */
  readonly length: number;
  /** Waits for a turn. Whoever leaves at the deadline is never served. */
  wait(): Promise<T>;
  /** Serves the one at the head; there must be one. */
  serve(item: T): void;
  /** Sends everybody away. */
  refuse(error: Error): void;
  /** Milliseconds the head has waited, and what all who were served have waited in sum. */
  stats(): { longestWaitMs: number; waitedMs: number };
};

type Waiter<T> = {
  readonly since: number;
  readonly timer: NodeJS.Timeout;
  resolve(item: T): void;
  reject(error: Error): void;
};

/** A line whose waiters leave after `limitMs` with the error that `late` makes. */
export function createWaitingLine<T>(limitMs: number, late: () => Error): WaitingLine<T> {
  // A Set keeps the order of arrival and lets one leave from the middle.
  const waiters = new Set<Waiter<T>>();
  let waitedMs = 0;
  const head = (): Waiter<T> | undefined => waiters.values().next().value;
  const leave = (waiter: Waiter<T>) => {
    waiters.delete(waiter);
    clearTimeout(waiter.timer);
  };
  return {
    get length() {
      return waiters.size;
    },
    wait: () =>
      new Promise<T>((resolve, reject) => {
        const waiter: Waiter<T> = {
          since: performance.now(),
          timer: setTimeout(() => {
            waiters.delete(waiter);
            reject(late());
          }, limitMs),
          resolve,
          reject,
        };
        waiters.add(waiter);
      }),
    serve(item) {
      const waiter = head();
      if (waiter === undefined) throw new Error('nobody waits');
      leave(waiter);
      waitedMs += performance.now() - waiter.since;
      waiter.resolve(item);
    },
    refuse(error) {
      for (const waiter of waiters) {
        leave(waiter);
        waiter.reject(error);
      }
    },
    stats() {
      const first = head();
      return { longestWaitMs: first === undefined ? 0 : performance.now() - first.since, waitedMs };
    },
  };
}
