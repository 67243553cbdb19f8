import type { TestContext } from 'node:test';

/** Longest time a duplicate may take to be told, while the first is inside a transaction. Milliseconds, from the contract. */
export const toldWithinMs = 50;

/** Tries of a measurement: on a busy machine one may be late for reasons of its own, a statement that waits always is. */
const tries = 5;

/** Runs a probe a few times and answers its last result with the fastest time, which is printed. */
export async function fastest<T>(
  t: TestContext,
  what: string,
  probe: () => Promise<T>,
): Promise<{ ms: number; result: T }> {
  let ms = Number.POSITIVE_INFINITY;
  let result: T | undefined;
  for (let i = 0; i < tries; i += 1) {
    const startedMs = performance.now();
    result = await probe();
    ms = Math.min(ms, performance.now() - startedMs);
  }
  t.diagnostic(`${what}: ${ms.toFixed(1)} ms`);
  return { ms, result: result as T };
}
