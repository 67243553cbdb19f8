import assert from 'node:assert/strict';
import { test } from 'node:test';
import { figuresOf, storyOf, summaryOf } from './chaos/report.ts';
import { type RunResult, runChaos } from './chaos/run.ts';

/** Milliseconds of the short form; `npm run chaos` is the long one. */
const stormMs = 14_000;

test('for fourteen seconds everything breaks, and nothing is lost or done twice', { timeout: 170_000 }, async (t) => {
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

function stories(result: RunResult): string {
  return [...result.violations.map((violation) => storyOf(violation, result)), ...errorsOf(result)].join('');
}

/** The servers' own words, where something is to be explained. */
function errorsOf({ violations, errors }: RunResult): readonly string[] {
  return violations.length === 0 ? [] : errors;
}
