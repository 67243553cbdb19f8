import { setTimeout as sleep } from 'node:timers/promises';
import { isRetryable } from './sqlstate.ts';
import { DatabaseUnavailable } from './unavailable.ts';

/** Pauses between tries while the database is away, in milliseconds: doubled from the first to the longest. */
const firstPauseMs = 50;
const longestPauseMs = 2_000;

/**
 * Does work again and again while the database is away, for what was paid and must not be lost. `work` must be safe to
 * repeat when its answer was lost. Ends with the last error after `forMs`; once `stop` has aborted there is one last try.
 */
export async function patiently<T>(
  stop: AbortSignal,
  work: () => Promise<T>,
  forMs = Number.POSITIVE_INFINITY,
): Promise<T> {
  const deadlineMs = performance.now() + forMs;
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    try {
      return await work();
    } catch (error) {
      const mayPass = error instanceof DatabaseUnavailable ? error.reason !== 'closed' : isRetryable(error);
      if (!mayPass || stop.aborted || performance.now() >= deadlineMs) throw error;
    }
    await sleep(pauseMs, undefined, { signal: stop }).catch(() => {});
  }
}
