import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cells } from '../../bench/cells/index.ts';
import { figures, ratios } from '../../bench/figures/index.ts';
import { alignTable, heading, points, renderMarkdown, renderTerminal, table, text } from '../../bench/report/blocks.ts';
import { drawChart } from '../../bench/report/chart.ts';
import { failureBlocks, frontBlocks, reportBlocks } from '../../bench/report/document.ts';
import { formatBytes, formatMs, formatNumber } from '../../bench/report/format.ts';
import { headline } from '../../bench/report/headline.ts';
import { withMadePart } from '../../bench/report/made-part.ts';
import { sizingBlocks } from '../../bench/report/sizing.ts';
import { summarise } from '../../bench/statistics/summary.ts';
import { checkLine, roundLine } from './lines.ts';

const blocks = [
  heading('Title'),
  text('Some **bold** words.'),
  table(
    ['', 'rate'],
    [
      ['one', '1'],
      ['three', '1,000'],
    ],
  ),
  points(['a', 'b']),
];

test('a terminal gets columns, without the marks of Markdown', () => {
  const shown = renderTerminal(blocks, () => undefined);
  assert.match(shown, /Some bold words\./);
  assert.match(shown, / {2}one {9}1\n {2}three {3}1,000/);
});

test('a document gets Markdown, its figures to the right', () => {
  const written = renderMarkdown(blocks, () => undefined);
  assert.match(written, /^## Title\n/);
  assert.match(written, /\| {2}\| rate \|\n\|---\|---:\|\n\| one \| 1 \|/);
});

test('a table is as wide as its widest cells', () => {
  const lines = alignTable(['', 'x'], [['long name', '1']]).split('\n');
  assert.equal(lines[2], '  long name   1');
});

test('numbers have as many digits as they deserve, and none where there is no figure', () => {
  assert.deepEqual([0.5321, 5.321, 53.21, 5321.4, 2, 40].map(formatNumber), [
    '0.53',
    '5.32',
    '53.2',
    '5,321',
    '2',
    '40',
  ]);
  assert.deepEqual([0.84, 23, 8_150].map(formatMs), ['0.84 ms', '23 ms', '8.15 s']);
  assert.deepEqual([412, 1_020, 3_400_000].map(formatBytes), ['412 B', '1.02 kB', '3.40 MB']);
  assert.deepEqual(
    [formatNumber, formatMs, formatBytes].map((format) => format(Number.NaN)),
    ['–', '–', '–'],
  );
});

test('a chart is one SVG for light and dark pages, titled, with escaped words', () => {
  const svg = drawChart({
    name: 'x',
    title: 'a < b & c',
    kind: 'lines',
    x: { name: 'writers', values: [5, 40, 400] },
    y: { name: 's', isLog: true },
    series: [
      { name: 'measured', values: [1, null, 3] },
      { name: 'expected', values: [1, 2, 3], isDashed: true },
    ],
  });
  assert.match(svg, /^<svg [^>]*role="img"><title>a &lt; b &amp; c<\/title><style>/);
  assert.match(svg, /prefers-color-scheme:dark/);
  assert.match(svg, /var\(--c0\)/);
  assert.doesNotMatch(svg, /NaN/);
});

test('every cell is told, and every ratio is of a cell that is there', () => {
  assert.deepEqual(figures.map((of) => of.cell).sort(), cells.map((cell) => cell.name).sort());
  for (const ratio of ratios)
    assert.ok(
      cells.some((cell) => cell.name === ratio.cell),
      ratio.name,
    );
});

test('a void arm shows no figure, and what did not hold is said', () => {
  const summary = summarise(
    [
      roundLine({ arm: 'plain', metrics: { goodput_per_s: 1_234 } }),
      roundLine({ arm: 'keyed', order: 2, metrics: { goodput_per_s: 777 } }),
      checkLine({ arm: 'keyed', name: 'orders = distinct keys', expected: 10, actual: 9, ok: false }),
    ],
    ratios,
  );
  const shown = renderTerminal([...reportBlocks(summary, figures), ...failureBlocks(summary)], () => undefined);
  assert.match(shown, /one INSERT +1,234/);
  assert.match(shown, /first run +void/);
  assert.doesNotMatch(shown, /777|NaN/);
  assert.match(shown, /keyed: orders = distinct keys: expected 10, found 9/);
});

test('the document says where its figures come from', () => {
  const front = renderMarkdown(frontBlocks(summarise([roundLine({})], ratios)), () => undefined);
  for (const part of ['abc1234', '20.0.0', '18.0', '2 cores', 'fsync on']) assert.ok(front.includes(part), part);
});

test('the sentence of the README is made of the figures, and void ones make none', () => {
  const lines = [
    roundLine({
      cell: 'locking',
      settings: { writers: 40, pool: 5, llm_ms: 1_000 },
      arm: 'row_lock',
      metrics: { wall_ms: 8_150, 'probe.max_ms': 7_012 },
    }),
    roundLine({
      cell: 'locking',
      settings: { writers: 40, pool: 5, llm_ms: 1_000 },
      arm: 'version',
      order: 2,
      metrics: { wall_ms: 1_070, 'probe.max_ms': 23 },
    }),
  ];
  const readme = 'before\n<!-- made by npm run bench -->\nold\n<!-- end -->\nafter\n';
  const headlineOf = (from: typeof lines) => headline(summarise(from, ratios), 'docs/results/locking.svg');
  const made = withMadePart(readme, headlineOf(lines));
  assert.match(made, /^before\n<!-- made by npm run bench -->\n\n!\[[^\]]*\]\(docs\/results\/locking\.svg\)/);
  assert.match(made, /\*\*8\.15 s\*\* with row locks, \*\*1\.07 s\*\* with versions; .* 7\.01 s and 23 ms\./);
  assert.match(made, /<!-- end -->\nafter\n$/);
  assert.doesNotMatch(made, /old/);
  const failed = checkLine({ cell: 'locking', settings: { writers: 40, pool: 5, llm_ms: 1_000 }, ok: false });
  assert.equal(withMadePart(readme, headline(summarise([...lines, failed], ratios), 'x.svg')), readme);
  assert.equal(withMadePart('no marks', headlineOf(lines)), 'no marks');
});

test('what keys need over a day follows from what one needs', () => {
  const settings = { stored: 1_000, due: 10, connections: 4 };
  const growth = roundLine({
    cell: 'growth',
    settings,
    arm: 'first_run',
    metrics: { key_bytes: 1_100, tombstone_bytes: 300, swept_per_s: 10_000, vacuum_scale_factor: 0.02 },
  });
  const keyed = roundLine({ cell: 'keys', arm: 'keyed', metrics: { requests: 10, wal_bytes: 12_000 } });
  const shown = renderMarkdown(sizingBlocks(summarise([growth, keyed], ratios)), () => undefined);
  const row = shown.split('\n').find((line) => line.startsWith('| 100,000,000 '));
  assert.equal(row, '| 100,000,000 | 1,157 | 110 GB | 900 GB | 120 GB | 23.1 % |');
  assert.match(shown, /2 dead rows .* when 2 % of the table are dead: about 3\.23 times a day/);
  assert.deepEqual(sizingBlocks(summarise([keyed], ratios)), []);
});
