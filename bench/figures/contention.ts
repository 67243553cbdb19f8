import { chart, heading, points, table, text } from '../report/blocks.ts';
import { formatCount, formatMs, formatNumber } from '../report/format.ts';
import type { VariantSummary } from '../statistics/summary.ts';
import { type Figures, finite, medianOf, plainly, withSpread } from './figures.ts';

const names = {
  row_lock: 'row lock',
  version: 'version, 412 handed to the caller',
  rerun: 'version, run again on 412',
  queue: 'queue by the document',
};

/** Writers on one document. */
export const contentionFigures: Figures = {
  cell: 'contention',
  ratios: [
    { name: 'ratio_rerun_calls_to_queue_calls', of: 'rerun', to: 'queue', metric: 'model_calls' },
    { name: 'ratio_row_lock_to_queue', of: 'row_lock', to: 'queue', metric: 'wall_ms' },
  ],
  blocks(variants) {
    const [first] = variants;
    if (first === undefined) return [];
    const most = variants.reduce((a, b) => (writersOf(b) > writersOf(a) ? b : a));
    const fewest = variants.reduce((a, b) => (writersOf(b) < writersOf(a) ? b : a));
    return [
      heading('Many writers on one document'),
      text(
        `All begin at the same moment from the same version; the model takes ${formatMs(Number(first.settings.llm_ms))}, the pool has ${first.settings.pool} connections. Tokens are what the model wrote; wasted are those of calls whose answer no version of the document came from.`,
      ),
      table(
        ['writers', 'way', 'wall time', 'edits kept', 'model calls', 'tokens paid', 'of these wasted'],
        variants.flatMap((variant) =>
          Object.entries(names).flatMap(([arm, name]) => {
            const summary = variant.arms[arm];
            if (summary === undefined) return [];
            const writers = formatCount(writersOf(variant));
            if (summary.isVoid) return [[writers, name, 'void', 'void', 'void', 'void', 'void']];
            return [
              [
                writers,
                name,
                withSpread(summary, 'wall_ms', formatMs),
                plainly(summary, 'edits_kept'),
                plainly(summary, 'model_calls'),
                plainly(summary, 'tokens_paid'),
                plainly(summary, 'tokens_wasted'),
              ],
            ];
          }),
        ),
      ),
      chart({
        name: 'contention',
        title: 'Model calls paid, by writers on one document',
        kind: 'bars',
        x: { name: 'writers', values: variants.map((variant) => String(writersOf(variant))) },
        y: { name: 'model calls', isLog: false },
        series: Object.entries(names).map(([arm, name]) => ({
          name,
          values: variants.map((variant) => finite(medianOf(variant, arm, 'model_calls'))),
        })),
      }),
      text('**Which to choose:**'),
      points(advice(fewest, most)),
    ];
  },
};

function writersOf(variant: VariantSummary): number {
  return Number(variant.settings.writers);
}

function advice(fewest: VariantSummary, most: VariantSummary): string[] {
  const few = writersOf(fewest);
  const many = writersOf(most);
  const calls = (variant: VariantSummary, arm: string) => formatNumber(medianOf(variant, arm, 'model_calls'));
  const wall = (variant: VariantSummary, arm: string) => formatMs(medianOf(variant, arm, 'wall_ms'));
  return [
    `**Version, 412 to the caller** where one edit at a time is meant and a person or a program can look again: everybody knows after ${wall(most, 'version')}, also with ${many} writers, but one edit is kept and ${calls(most, 'version')} calls are paid. The 412 carries what the model wrote.`,
    `**Version, run again** where conflicts are rare: with ${few} writers ${calls(fewest, 'rerun')} calls for ${few} edits. Every round all losers pay again, N(N+1)/2 in the worst case: with ${many} writers ${calls(most, 'rerun')} calls for ${many} edits.`,
    `**A queue by the document** where all edits must be kept and several come at once: with ${many} writers ${calls(most, 'queue')} calls in ${wall(most, 'queue')}, none wasted, and no connection is held while one waits or the model thinks.`,
    `**A row lock** keeps all edits for as few calls (${calls(most, 'row_lock')} in ${wall(most, 'row_lock')}), but each writer that waits holds a connection, and so does the model's call: only for work that takes milliseconds.`,
  ];
}
