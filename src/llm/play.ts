import type { EndingFault } from './directives.ts';
import type { Plan } from './plan.ts';

/** Time as a pretended model sees it. `sleep` rejects with the signal's reason when it fires. */
export type Clock = { readonly now: () => number; readonly sleep: (ms: number, signal: AbortSignal) => Promise<void> };

/** What happens next: tokens, and at last the end or the fault. A stall never gets here: it waits for the signal. */
export type Step =
  | { readonly kind: 'tokens'; readonly tokens: readonly string[] }
  | { readonly kind: 'fault'; readonly fault: EndingFault }
  | { readonly kind: 'end' };

/** The process's own clock. */
export const systemClock: Clock = {
  now: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const stop = () => {
        clearTimeout(timer);
        reject(signal.reason);
      };
      const timer = setTimeout(() => {
        signal.removeEventListener('abort', stop);
        resolve();
      }, ms);
      signal.addEventListener('abort', stop, { once: true });
    }),
};

/**
 * Plays a plan in time. It wakes at most once in `tickMs()` and then brings every token that is due, so that thousands of
 * plans cost timers by their number and not by their tokens; the last token comes when the plan says, whatever the tick.
 */
export async function* play(
  plan: Plan,
  { signal, clock, tickMs }: { readonly signal: AbortSignal; readonly clock: Clock; readonly tickMs: () => number },
): AsyncGenerator<Step> {
  const startMs = clock.now();
  const { tokens, fault, firstMs, latencyMs } = plan;
  const spacingMs = tokens.length === 0 ? latencyMs : latencyMs / tokens.length;
  const dueMs = (index: number) => Math.max(firstMs, spacingMs * (index + 1));
  const stopAt = Math.min(tokens.length, fault === undefined ? tokens.length : 'after' in fault ? fault.after : 0);
  const rest = (untilMs: number) => clock.sleep(Math.max(0, untilMs - (clock.now() - startMs)), signal);

  if (stopAt === 0) await rest(fault === undefined ? latencyMs : firstMs);
  let played = 0;
  while (played < stopAt) {
    const elapsedMs = clock.now() - startMs;
    await rest(Math.max(dueMs(played), Math.min(elapsedMs + tickMs(), dueMs(stopAt - 1))));
    // Half a millisecond of grace: timers are rounded to whole ones and may be that early.
    const nowMs = clock.now() - startMs + 0.5;
    let next = played;
    while (next < stopAt && dueMs(next) <= nowMs) next++;
    if (next === played) continue;
    yield { kind: 'tokens', tokens: tokens.slice(played, next) };
    played = next;
  }
  if (fault === undefined) yield { kind: 'end' };
  else if (fault.kind === 'stall') await untilAborted(signal);
  else yield { kind: 'fault', fault };
}

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.throwIfAborted();
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
