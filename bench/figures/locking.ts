import { chart, heading, points, table, text } from '../report/blocks.ts';
import { formatCount, formatMs, formatNumber, formatTimes } from '../report/format.ts';
import type { VariantSummary } from '../statistics/summary.ts';
import { armTable, type Figures, finite, medianOf, plainly, statusWords, verdict, withSpread } from './figures.ts';

const names = { row_lock: 'row lock', version: 'version' };

/** What the comparison of the chapter aims at; it holds for those settings alone. */
const aims = { times: 7.5, withinModel: 1.1, probeMs: 100 };

type Point = { readonly writers: number; readonly pool: number; readonly llmMs: number; readonly of: VariantSummary };

/** Row lock against version with a model call in the middle, each writer on a document of its own. */
export const lockingFigures: Figures = {
  cell: 'locking',
  ratios: [{ name: 'ratio', of: 'row_lock', to: 'version', metric: 'wall_ms' }],
  blocks(variants) {
    const [main, ...rest] = variants.map(pointOf);
    if (main === undefined) return [];
    const sweep = rest.filter((point) => point.of !== main.of);
    return [
      heading('A model call while a row is locked, and one that is checked by version'),
      text(
        `${formatCount(main.writers)} writers, each on a document of its own, on a pool of ${main.pool}; the model takes ${formatMs(main.llmMs)}. The row lock is \`select … for update\`, the call, \`update\`, \`commit\`; the version is \`POST /v1/docs/{id}/rewrite\`: no transaction is open while the model thinks. An unrelated GET is asked for every 25 ms meanwhile.`,
      ),
      armTable(main.of, names, [
        { heading: 'wall time', of: (arm) => withSpread(arm, 'wall_ms', formatMs) },
        { heading: 'edits / s', of: (arm) => plainly(arm, 'goodput_per_s') },
        { heading: 'model calls', of: (arm) => plainly(arm, 'model_calls') },
        { heading: 'GET p50', of: (arm) => plainly(arm, 'probe.p50_ms', formatMs) },
        { heading: 'GET p99', of: (arm) => plainly(arm, 'probe.p99_ms', formatMs) },
        { heading: 'GET max', of: (arm) => plainly(arm, 'probe.max_ms', formatMs) },
        { heading: 'answers', of: statusWords },
      ]),
      points(mainWords(main)),
      ...(sweep.length === 0 ? [] : sweepBlocks(sweep)),
    ];
  },
};

function pointOf(of: VariantSummary): Point {
  const { writers, pool, llm_ms } = of.settings;
  return { writers: Number(writers), pool: Number(pool), llmMs: Number(llm_ms), of };
}

/** The least a row lock can take: so many waves of one connection each. */
function waves({ writers, pool, llmMs }: Point): number {
  return Math.ceil(writers / pool) * llmMs;
}

function mainWords(main: Point): string[] {
  const { of, llmMs } = main;
  const times = of.ratios.ratio?.median ?? Number.NaN;
  const version = medianOf(of, 'version', 'wall_ms');
  const probe = medianOf(of, 'version', 'probe.max_ms');
  const isChapter = main.writers === 40 && main.pool === 5 && llmMs === 1_000;
  const judged = (words: string, reached: boolean) => (isChapter ? `${words}: ${verdict(reached)}` : words);
  return [
    judged(
      `The version takes ${formatMs(version)}, **${formatTimes(times)}** less than the row lock's ${formatMs(medianOf(of, 'row_lock', 'wall_ms'))}${isChapter ? `, aim at least ${aims.times}` : ''}`,
      times >= aims.times,
    ),
    judged(
      `It stays at ${formatNumber(version / llmMs)} of the model's own time${isChapter ? `, aim at most ${aims.withinModel}` : ''}`,
      version <= llmMs * aims.withinModel,
    ),
    judged(
      `The slowest unrelated GET took ${formatMs(probe)} beside versions and ${formatMs(medianOf(of, 'row_lock', 'probe.max_ms'))} beside row locks${isChapter ? `, aim below ${aims.probeMs} ms` : ''}`,
      probe < aims.probeMs,
    ),
    `No two writers want the same row: the row lock's time is not made of conflicts but of connections that are occupied while a model thinks: ⌈${main.writers}/${main.pool}⌉ × ${formatMs(llmMs)} = ${formatMs(waves(main))}.`,
  ].map((words) => (words.endsWith('.') ? words : `${words}.`));
}

function sweepBlocks(sweep: readonly Point[]) {
  const [first] = sweep as [Point, ...Point[]];
  const wall = (point: Point, arm: string) => medianOf(point.of, arm, 'wall_ms');
  const figure = (point: Point, arm: string, metric: string, format: (value: number) => string) => {
    const summary = point.of.arms[arm];
    if (summary === undefined) return '–';
    return summary.isVoid ? 'void' : plainly(summary, metric, format);
  };
  const last = sweep.at(-1) as Point;
  const cpu = medianOf(last.of, 'version', 'node_cpu_ms') + medianOf(last.of, 'version', 'postgres_cpu_ms');
  return [
    text(
      `The same with more and more writers; the model takes ${formatMs(first.llmMs)}, the pool stays at ${first.pool}.`,
    ),
    table(
      ['writers', 'row lock', '⌈writers/pool⌉ × model', 'version', 'GET max, row lock', 'GET max, version'],
      sweep.map((point) => [
        formatCount(point.writers),
        figure(point, 'row_lock', 'wall_ms', formatMs),
        formatMs(waves(point)),
        figure(point, 'version', 'wall_ms', formatMs),
        figure(point, 'row_lock', 'probe.max_ms', formatMs),
        figure(point, 'version', 'probe.max_ms', formatMs),
      ]),
    ),
    points([
      `The row lock's line grows with the writers, the version's stays near the model's time until the machine is the limit: with ${formatCount(last.writers)} writers it is at ${formatNumber(wall(last, 'version') / last.llmMs)} of it, where the server and Postgres together need ${formatMs(cpu)} of CPU for the burst (claims, reads, commits and ${formatCount(medianOf(last.of, 'version', 'statements'))} statements) on the ${first.pool} connections and the cores that the client shares with them.`,
    ]),
    chart({
      name: 'locking',
      title: `Wall time by writers, each on a document of its own (model ${formatMs(first.llmMs)}, pool ${first.pool})`,
      kind: 'lines',
      x: { name: 'writers', values: sweep.map((point) => point.writers) },
      y: { name: 'wall time, s', isLog: true },
      series: [
        { name: 'row lock', values: sweep.map((point) => finite(wall(point, 'row_lock') / 1_000)) },
        { name: 'version', values: sweep.map((point) => finite(wall(point, 'version') / 1_000)) },
        { name: '⌈writers/pool⌉ × model', values: sweep.map((point) => waves(point) / 1_000), isDashed: true },
      ],
    }),
  ];
}
