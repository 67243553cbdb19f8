import { setTimeout as sleep } from 'node:timers/promises';
import { DatabaseUnavailable } from '../../db/pool.ts';
import { isRetryable } from '../../db/sqlstate.ts';

/** Pauses between tries while the database is away, in milliseconds: doubled from the first to the longest. */
const firstPauseMs = 50;
const longestPauseMs = 2_000;

/**
 * Does work on the database again and again while the database is away: what the model said is paid. `work` must be safe to
 * repeat when its answer was lost. Once `stop` has aborted there is one last try.
 */
export async function patiently<T>(stop: AbortSignal, work: () => Promise<T>): Promise<T> {
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    try {
      return await work();
    } catch (error) {
      const mayPass = error instanceof DatabaseUnavailable ? error.reason !== 'closed' : isRetryable(error);
      if (!mayPass || stop.aborted) throw error;
    }
    await sleep(pauseMs, undefined, { signal: stop }).catch(() => {});
  }
}
