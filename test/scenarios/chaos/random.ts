/** Random numbers from a seed: the same seed gives the same intents and the same faults, though not the same moments. */
export type Random = {
  /** From 0 up to 1. */
  next(): number;
  /** A whole number, both ends included. */
  between(min: number, max: number): number;
  pick<T>(from: readonly T[]): T;
  /** True so often, from 0 to 1. */
  chance(share: number): boolean;
  shuffle<T>(items: readonly T[]): T[];
  /** A stream of its own, so that one consumer does not shift another's numbers. */
  fork(): Random;
};

/** A stream of random numbers (mulberry32: 32 bits of state are plenty here). */
export function createRandom(seed: number): Random {
  let state = seed | 0;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const between = (min: number, max: number) => min + Math.floor(next() * (max - min + 1));
  return {
    next,
    between,
    pick: <T>(from: readonly T[]) => from[Math.floor(next() * from.length)] as T,
    chance: (share) => next() < share,
    shuffle<T>(items: readonly T[]) {
      const left = [...items];
      for (let i = left.length - 1; i > 0; i -= 1) {
        const j = between(0, i);
        [left[i], left[j]] = [left[j] as T, left[i] as T];
      }
      return left;
    },
    fork: () => createRandom(Math.floor(next() * 4_294_967_296)),
  };
}
