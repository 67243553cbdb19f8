import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runChaos } from './chaos/run.ts';

/** Runs without the fence at most: whether a late owner meets its successor is a matter of luck each time. */
const maxRuns = 4;

test('with the fence taken out, the same bench finds late owners that did it again', {
  timeout: 170_000,
}, async (t) => {
  const late = new Set(['lost_before_commit', 'lost_after_model']);
  for (let seed = 1; seed <= maxRuns; seed += 1) {
    const result = await runChaos({ seed, stormMs: 12_000, fence: 'out', isWanted: (kind) => late.has(kind) });
    const found = result.violations.filter(
      ({ rule }) => rule === 'done once' || rule === 'one answer' || rule === 'one charge',
    );
    t.diagnostic(`run ${seed}: ${found.length} violations`);
    if (found.length > 0) return;
  }
  assert.fail('nothing was found');
});
