import type { TestContext } from 'node:test';

const undoings = new WeakMap<TestContext, (() => unknown)[]>();

/**
 * Undoes something when the test is over, the newest first (`t.after` alone goes from the oldest: it would drop a database
 * under the server that uses it). All are undone, then the first failure fails the test.
 */
export function atEnd(t: TestContext, undo: () => unknown): void {
  const known = undoings.get(t);
  if (known !== undefined) {
    known.push(undo);
    return;
  }
  const stack = [undo];
  undoings.set(t, stack);
  t.after(async () => {
    const failures: unknown[] = [];
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      try {
        await next();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  });
}
