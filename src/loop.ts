import { setTimeout as sleep } from 'node:timers/promises';

/** A running background loop. */
export type Loop = {
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
  const run = async () => {
    while (!signal.aborted) {
      const { more } = await once(signal).catch((error: unknown) => {
        if (!signal.aborted) onError(error);
        return { more: false };
      });
      if (!more) await sleep(everyMs, undefined, { signal, ref: false }).catch(() => {});
    }
  };
  const ended = run();
  return {
    async stop() {
      stopping.abort();
      await ended;
    },
  };
}
