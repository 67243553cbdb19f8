/** Before the second try, in milliseconds; doubled before each further one. */
const firstDelayMs = 500;
/** Longest pause between two tries, in milliseconds: an outage of a provider is noticed to be over within it. */
const maxDelayMs = 60_000;

/**
 * How long a job waits after its `tries`-th failed try, in milliseconds: doubled each time, the upper half at random, so that
 * jobs that failed together do not come back together. Never before the provider's `Retry-After`. `random` is in [0, 1).
 */
export function retryDelayMs(tries: number, random: number, retryAfterMs = 0): number {
  const ceilingMs = Math.min(maxDelayMs, firstDelayMs * 2 ** (tries - 1));
  const jitteredMs = ceilingMs * (0.5 + random / 2);
  return Math.round(Math.max(jitteredMs, retryAfterMs + random * firstDelayMs));
}
