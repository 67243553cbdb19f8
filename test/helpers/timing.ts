import type { TestContext } from 'node:test';

/** Longest time a duplicate may take to be told, while the first is inside a transaction. Milliseconds, from the contract. */
export const toldWithinMs = 50;

/** Tries of a measurement, and most tries on a machine that is too busy to say. */
const tries = { usual: 5, most: 30 };
/** What takes this long waits for something; a busy machine is not so slow. Milliseconds. */
const waitsMs = 1_000;

/**
 * Runs a probe a few times and answers its last result with the fastest time, which is printed: one try may be late for
 * reasons of its own, a statement that waits for another always is.
 */
export async function fastest<T>(
  t: TestContext,
  what: string,
  probe: () => Promise<T>,
): Promise<{ ms: number; result: T }> {
  let ms = Number.POSITIVE_INFINITY;
  let result: T | undefined;
  for (let i = 0; i < tries.usual || (i < tries.most && ms >= toldWithinMs); i += 1) {
    const startedMs = performance.now();
    result = await probe();
    const tookMs = performance.now() - startedMs;
    ms = Math.min(ms, tookMs);
    if (tookMs > waitsMs) break;
  }
  t.diagnostic(`${what}: ${ms.toFixed(1)} ms`);
  return { ms, result: result as T };
}
