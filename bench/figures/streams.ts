import { chart, heading, points, table, text } from '../report/blocks.ts';
import { formatBytes, formatCount, formatMs, formatNumber } from '../report/format.ts';
import type { VariantSummary } from '../statistics/summary.ts';
import { type Figures, finite, medianOf, plainly, withSpread } from './figures.ts';

const names = { batched: 'in batches', row_per_token: 'a row a token' };
const headings = ['lag p50', 'lag p99', 'first byte p99', 'rows', 'WAL', 'statements', 'Node CPU'];

/** Readers of running jobs. */
export const streamsFigures: Figures = {
  cell: 'streams',
  ratios: [{ name: 'ratio_rows', of: 'row_per_token', to: 'batched', metric: 'event_rows_per_answer' }],
  blocks(variants) {
    const [first] = variants;
    const last = variants.at(-1);
    if (first === undefined || last === undefined) return [];
    const { tokens, llm_ms } = first.settings;
    const readersOf = (variant: VariantSummary) => Number(variant.settings.readers);
    const at = (variant: VariantSummary, arm: string, metric: string) => medianOf(variant, arm, metric);
    return [
      heading('Streams: from the model to its readers'),
      text(
        `Each model says ${tokens} tokens in ${formatMs(Number(llm_ms))}, and every token is the moment at which it was said: the lag is the way from the model through the database to a reader. Rows, WAL, statements and CPU are per answer (up to ${last.settings.jobs} run at the same time; the readers are spread over them).`,
      ),
      table(
        ['readers', 'what is said is written', ...headings],
        variants.flatMap((variant) =>
          Object.entries(names).flatMap(([arm, name]) => {
            const summary = variant.arms[arm];
            if (summary === undefined) return [];
            const readers = formatCount(readersOf(variant));
            if (summary.isVoid) return [[readers, name, ...headings.map(() => 'void')]];
            return [
              [
                readers,
                name,
                withSpread(summary, 'lag.p50_ms', formatMs),
                plainly(summary, 'lag.p99_ms', formatMs),
                plainly(summary, 'first_byte.p99_ms', formatMs),
                plainly(summary, 'event_rows_per_answer'),
                plainly(summary, 'wal_bytes_per_request', formatBytes),
                plainly(summary, 'statements_per_request'),
                plainly(summary, 'node_cpu_us_per_request', (us) => formatMs(us / 1_000)),
              ],
            ];
          }),
        ),
      ),
      points([
        `A batch waits for at most 50 ms, which is what a single reader's median lag is made of: ${formatMs(at(first, 'batched', 'lag.p50_ms'))} against ${formatMs(at(first, 'row_per_token', 'lag.p50_ms'))} with a row a token. For it an answer takes ${formatNumber(at(first, 'batched', 'event_rows_per_answer'))} rows instead of ${formatNumber(at(first, 'row_per_token', 'event_rows_per_answer'))}, and ${formatBytes(at(first, 'batched', 'wal_bytes_per_request'))} of WAL instead of ${formatBytes(at(first, 'row_per_token', 'wal_bytes_per_request'))}.`,
        `With ${formatCount(readersOf(last))} readers the lag's p99 is ${formatMs(at(last, 'batched', 'lag.p99_ms'))} in batches and ${formatMs(at(last, 'row_per_token', 'lag.p99_ms'))} with a row a token. All readers are in the process of the benchmark, whose own work is part of it.`,
      ]),
      chart({
        name: 'streams',
        title: 'Lag from the model to the reader (p99)',
        kind: 'bars',
        x: { name: 'readers', values: variants.map((variant) => formatCount(readersOf(variant))) },
        y: { name: 'lag p99, ms', isLog: false },
        series: Object.entries(names).map(([arm, name]) => ({
          name,
          values: variants.map((variant) => finite(at(variant, arm, 'lag.p99_ms'))),
        })),
      }),
    ];
  },
};
