/** Ends one try: when the caller's signal says so, or when a time limit has passed. */
export type Deadline = {
  /** For `fetch`. */
  readonly signal: AbortSignal;
  readonly isTimedOut: () => boolean;
  /** Sets the limit anew: so many milliseconds from now. */
  within(ms: number): void;
  /** Lifts the limit until `within` sets one again. */
  pause(): void;
  /** Must be called in the end: frees the timer and the listener on the caller's signal. */
  release(): void;
  /** Ends the try now, and what of its answer is still under way. */
  abort(): void;
};

/** A deadline without a limit yet. (`AbortSignal.any` would hold on to a long-lived signal in some engines.) */
export function createDeadline(outer: AbortSignal | undefined): Deadline {
  const controller = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let timedOut = false;
  const follow = () => controller.abort(outer?.reason);
  outer?.addEventListener('abort', follow, { once: true });
  if (outer?.aborted) follow();
  const pause = () => clearTimeout(timer);
  return {
    signal: controller.signal,
    isTimedOut: () => timedOut,
    within(ms) {
      clearTimeout(timer);
      timer = setTimeout(() => {
        timedOut = true;
        controller.abort();
      }, ms);
    },
    pause,
    release() {
      pause();
      outer?.removeEventListener('abort', follow);
    },
    abort: () => controller.abort(),
  };
}
