import type { TestContext } from 'node:test';

/** What is to be undone at the end, for helpers that know only tests. */
export type Scope = {
  /** Stands in for a test: helpers ask it for `after` alone. */
  readonly t: TestContext;
  /** Undoes everything, the newest first; the first failure is thrown when all is done. */
  close(): Promise<void>;
};

/** An open scope. */
export function openScope(): Scope {
  const undoings: (() => unknown)[] = [];
  return {
    t: { after: (undo: () => unknown) => void undoings.push(undo) } as unknown as TestContext,
    async close() {
      const failures: unknown[] = [];
      for (let undo = undoings.pop(); undo !== undefined; undo = undoings.pop()) {
        try {
          await undo();
        } catch (error) {
          failures.push(error);
        }
      }
      if (failures.length > 0) throw failures[0];
    },
  };
}
