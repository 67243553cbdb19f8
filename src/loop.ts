/** A running background loop. */
export type Loop = {
  /** Ends the pause: a round begins now, or right after the one that is running. */
  wake(): void;
  /** Stops it; resolves when the round that is running has ended. */
  stop(): Promise<void>;
};

/**
 * Calls `once` again and again: at once while it says there is more, else after `everyMs`. A round that fails is told to
 * `onError` and tried again after the pause.
 */
export function startLoop(
  once: (signal: AbortSignal) => Promise<{ more: boolean }>,
  everyMs: number,
  onError: (error: unknown) => void,
): Loop {
  const stopping = new AbortController();
  const { signal } = stopping;
  let isWoken = false;
  let endPause = () => {};
  const pause = () =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, everyMs);
      timer.unref();
      endPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  const run = async () => {
    while (!signal.aborted) {
      isWoken = false;
      const { more } = await once(signal).catch((error: unknown) => {
        if (!signal.aborted) onError(error);
        return { more: false };
      });
      if (!more && !isWoken && !signal.aborted) await pause();
    }
  };
  const wake = () => {
    isWoken = true;
    endPause();
  };
  const ended = run();
  return {
    wake,
    async stop() {
      stopping.abort();
      wake();
      await ended;
    },
  };
}
