import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RawLine } from '../../bench/lines.ts';
import { formatLine, parseLines } from '../../bench/lines.ts';
import { jsonOf, nest } from '../../bench/statistics/json.ts';
import { latencyMetrics, median, quantile, spread } from '../../bench/statistics/quantiles.ts';
import { type RatioDefinition, summarise, withPerRequest } from '../../bench/statistics/summary.ts';
import { checkLine, environment, faultLine, roundLine } from './lines.ts';

const ratios: readonly RatioDefinition[] = [
  { name: 'ratio', cell: 'keys', of: 'keyed', to: 'plain', metric: 'goodput_per_s', aim: 0.5 },
];

test('a quantile is a value of the sample: the nearest rank', () => {
  const sorted = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
  assert.equal(quantile(sorted, 0.5), 5);
  assert.equal(quantile(sorted, 0.95), 10);
  assert.equal(quantile(sorted, 0), 1);
  assert.equal(quantile(sorted, 1), 10);
  assert.equal(quantile([7], 0.99), 7);
  assert.ok(Number.isNaN(quantile([], 0.5)));
});

test('a median does not ask for order and takes the mean of the two middle ones', () => {
  assert.equal(median([9, 1, 5]), 5);
  assert.equal(median([4, 1, 3, 2]), 2.5);
  assert.ok(Number.isNaN(median([])));
  assert.deepEqual(spread([3, 1, 2]), [1, 3]);
});

test('latencies are sorted as numbers', () => {
  const { p50_ms, max_ms } = latencyMetrics([100, 9, 20]);
  assert.deepEqual([p50_ms, max_ms], [20, 100]);
  assert.equal(latencyMetrics([5], 'probe.')['probe.p99_ms'], 5);
});

test('counters of a round are told by request, milliseconds as microseconds', () => {
  const told = withPerRequest({ requests: 200, statements: 300, node_cpu_ms: 40, wal_bytes: 20_000 });
  assert.equal(told.statements_per_request, 1.5);
  assert.equal(told.node_cpu_us_per_request, 200);
  assert.equal(told.wal_bytes_per_request, 100);
  assert.deepEqual(withPerRequest({ wall_ms: 5 }), { wall_ms: 5 });
});

test('an arm is told by the median of its rounds, their spread and all its answers', () => {
  const { variants } = summarise(
    [100, 300, 200].map((goodput, n) =>
      roundLine({ round: n + 1, metrics: { goodput_per_s: goodput }, statuses: { 201: 10, 409: n } }),
    ),
    [],
  );
  const arm = variants[0]?.arms.plain;
  assert.equal(arm?.rounds, 3);
  assert.equal(arm?.median.goodput_per_s, 200);
  assert.deepEqual(arm?.spread.goodput_per_s, [100, 300]);
  assert.deepEqual(arm?.statuses, { 201: 30, 409: 3 });
});

test('a ratio is made within each round, so that a slow round slows both of its arms', () => {
  const rounds: RawLine[] = [];
  for (const [index, speed] of [1_000, 10, 100].entries()) {
    rounds.push(roundLine({ arm: 'plain', round: index + 1, order: 1, metrics: { goodput_per_s: speed } }));
    rounds.push(roundLine({ arm: 'keyed', round: index + 1, order: 2, metrics: { goodput_per_s: speed * 0.6 } }));
  }
  const ratio = summarise(rounds, ratios).variants[0]?.ratios.ratio;
  assert.ok(ratio !== undefined && Math.abs(ratio.median - 0.6) < 1e-9);
  assert.equal(ratio.reached, true);
  const missed = summarise(rounds, [{ ...(ratios[0] as RatioDefinition), aim: 0.7 }]).variants[0]?.ratios.ratio;
  assert.equal(missed?.reached, false);
});

test('a failed check voids the arm it is about, and every arm when it names none', () => {
  const rounds = [roundLine({ arm: 'plain' }), roundLine({ arm: 'keyed', order: 2 })];
  const one = summarise([...rounds, checkLine({ arm: 'keyed', ok: false })], ratios);
  assert.equal(one.ok, false);
  assert.deepEqual(
    Object.values(one.variants[0]?.arms ?? {}).map((arm) => arm.isVoid),
    [false, true],
  );
  assert.deepEqual(one.variants[0]?.ratios, {}, 'no ratio is made of a void arm');

  const all = summarise([...rounds, checkLine({ ok: false })], ratios);
  assert.deepEqual(
    Object.values(all.variants[0]?.arms ?? {}).map((arm) => arm.isVoid),
    [true, true],
  );
});

test('a comparison that broke off is no result', () => {
  const summary = summarise([roundLine({}), faultLine('the server ended')], ratios);
  assert.equal(summary.ok, false);
  assert.equal(summary.variants[0]?.arms.plain?.isVoid, true);
  assert.equal(summary.variants[0]?.fault, 'the server ended');
});

test('nothing measured is not a success', () => {
  assert.equal(summarise([], ratios).ok, false);
});

test('the same cell with other settings is another comparison', () => {
  const { variants } = summarise(
    [roundLine({ settings: { stored: 10 } }), roundLine({ settings: { stored: 100 } })],
    [],
  );
  assert.deepEqual(
    variants.map((variant) => variant.settings),
    [{ stored: 10 }, { stored: 100 }],
  );
});

test('arms stand in the order of the first round, not of the last', () => {
  const { variants } = summarise(
    [
      roundLine({ arm: 'b', round: 2, order: 1 }),
      roundLine({ arm: 'a', round: 2, order: 2 }),
      roundLine({ arm: 'a', round: 1, order: 1 }),
      roundLine({ arm: 'b', round: 1, order: 2 }),
    ].sort((x, y) => x.round - y.round),
    [],
  );
  assert.deepEqual(Object.keys(variants[0]?.arms ?? {}), ['a', 'b']);
});

test('raw lines survive being written and read', () => {
  const lines = [roundLine({}), checkLine({ ok: true }), faultLine('x')];
  assert.deepEqual(parseLines(lines.map(formatLine).join('')), lines);
  assert.throws(() => parseLines('{"type":"round"}\nnonsense\n'), /line 2 is no JSON/);
});

test('dots in the names of figures become members', () => {
  assert.deepEqual(nest({ wall_ms: 8_012.4, 'probe.p50_ms': 1.23456, 'probe.max_ms': 7 }), {
    wall_ms: 8_012,
    probe: { p50_ms: 1.235, max_ms: 7 },
  });
});

test('one cell is the object itself, several stand under their names', () => {
  const one = jsonOf(summarise([roundLine({ cell: 'keys' })], ratios));
  assert.equal(one.cell, 'keys');
  assert.deepEqual(one.environment, environment);
  const two = jsonOf(summarise([roundLine({ cell: 'keys' }), roundLine({ cell: 'http' })], ratios));
  assert.deepEqual(Object.keys(two.cells as object), ['keys', 'http']);
});

test('a cell of several comparisons is its first one, with all of them beside it', () => {
  const json = jsonOf(
    summarise([roundLine({ settings: { writers: 40 } }), roundLine({ settings: { writers: 5 } })], ratios),
  );
  assert.deepEqual(json.settings, { writers: 40 });
  assert.equal((json.variants as unknown[]).length, 2);
});
