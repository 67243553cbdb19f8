import type { StreamBody } from '../../http/stream.ts';
import { formatComment, formatRetry } from '../../protocol/event-stream.ts';
import type { JobRef } from './event-store.ts';
import type { JobFeed } from './feed.ts';

/** How long a reader waits before it connects again, in milliseconds. */
const retryMs = 2_000;
/** A quiet stream says so every so often, so that nobody between closes it. Milliseconds. */
export const heartbeatMs = 15_000;

/** A job's events behind `after`: those that are kept, then live ones, to the terminal one. A slow reader slows only itself. */
export function jobStream(feed: JobFeed, job: JobRef, after: number, quietMs: number = heartbeatMs): StreamBody {
  return async (out) => {
    const reader = feed.open(job, after);
    try {
      await out.write(formatRetry(retryMs));
      while (!out.signal.aborted) {
        const next = await reader.next(quietMs, out.signal);
        if (next === 'end') return;
        await out.write(next === 'quiet' ? formatComment() : next.join(''));
      }
    } finally {
      reader.close();
    }
  };
}

/**
 * The number behind which a reader goes on: the larger one of `Last-Event-ID` and `?after`; 0 when there is none. Undefined:
 * one of them is no non-negative integer, or the header came twice.
 */
export function startOf(headerLines: readonly string[], after: string | undefined): number | undefined {
  if (headerLines.length > 1) return undefined;
  let start = 0;
  for (const text of [...headerLines, ...(after === undefined ? [] : [after])]) {
    // More digits than an int4 has name no event; 15 of them are still exact.
    if (!/^[0-9]{1,15}$/.test(text)) return undefined;
    start = Math.max(start, Number(text));
  }
  return start;
}
