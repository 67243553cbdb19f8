import type { LoadSize } from '../options.ts';

/** How long one round of a rate lasts, and the warm-up before the first. Milliseconds. */
export const roundMs: Readonly<Record<LoadSize, number>> = { smoke: 60, quick: 400, usual: 600, full: 3_000 };
/** Thrown away: enough for V8 to compile what is hot and for Postgres to touch its pages. Milliseconds. */
export const warmUpMs: Readonly<Record<LoadSize, number>> = { smoke: 20, quick: 300, usual: 600, full: 2_000 };
/** Rounds of a rate. */
export const rateRounds: Readonly<Record<LoadSize, number>> = { smoke: 1, quick: 3, usual: 5, full: 7 };
/** Rounds of what takes seconds each. */
export const longRounds: Readonly<Record<LoadSize, number>> = { smoke: 1, quick: 1, usual: 3, full: 3 };

/** How long a variant of rates takes, its start and its warm-up included. */
export function rateEstimateMs(size: LoadSize, arms: number, rounds: number): number {
  return startMs + arms * (warmUpMs[size] * 1.3 + 200 + rounds * (roundMs[size] + 60));
}

/** A fresh database and a fresh server process, and their end. Milliseconds. */
export const startMs = 2_000;
