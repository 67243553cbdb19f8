import assert from 'node:assert/strict';
import { test } from 'node:test';
import { figuresOf, storyOf, summaryOf } from './chaos/report.ts';
import { type RunResult, runChaos } from './chaos/run.ts';

/** Milliseconds of the short form; `npm run chaos` is the long one. */
const stormMs = 18_000;
/** Runs without the fence at most: whether a late owner meets its successor is a matter of luck each time. */
const maxRuns = 4;

test('for eighteen seconds everything breaks, and nothing is lost or done twice', { timeout: 170_000 }, async (t) => {
  const seed = 1;
  const result = await runChaos({ seed, stormMs });
  const figures = figuresOf(result, seed, stormMs / 60_000);
  t.diagnostic(summaryOf(figures));
  assert.equal(stories(result), '');
  assert.ok(result.history.intents.length > 20, 'hardly anything was wanted');
  assert.ok(figures.replays > 5, 'hardly anything was replayed');
  for (const place of ['server-1', 'server-2', 'database', 'edge']) {
    assert.ok(
      result.history.faults.some(({ what }) => what === place),
      `nothing happened to ${place}`,
    );
  }
});

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

function stories(result: RunResult): string {
  return [...result.violations.map((violation) => storyOf(violation, result)), ...errorsOf(result)].join('');
}

/** The servers' own words, where something is to be explained. */
function errorsOf({ violations, errors }: RunResult): readonly string[] {
  return violations.length === 0 ? [] : errors;
}
