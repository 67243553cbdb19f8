import { chart, heading, points, table, text } from '../report/blocks.ts';
import { formatCount, formatMs, formatNumber } from '../report/format.ts';
import { type Figures, finite, medianOf, plainly, withSpread } from './figures.ts';

const arms = { first_run: 'first run', replay: 'replay' };
/** How much slower the largest may be than the smallest. */
const flatWithin = 1.2;

/** Whether keys that are stored slow down those that come. */
export const growthFigures: Figures = {
  cell: 'growth',
  ratios: [],
  blocks(variants) {
    const [first] = variants;
    const last = variants.at(-1);
    if (first === undefined || last === undefined) return [];
    const storedIn = (variant: typeof first) => Number(variant.settings.stored);
    const growthOf = (arm: string) => medianOf(last, arm, 'p50_ms') / medianOf(first, arm, 'p50_ms');
    const sentences = Object.entries(arms).map(([arm, name]) => {
      const times = growthOf(arm);
      const verdict = times <= flatWithin ? 'flat within 20 %' : 'not flat within 20 %';
      return `${name}: the median with ${formatCount(storedIn(last))} keys is **${formatNumber(times)}** of that with ${formatCount(storedIn(first))}: ${verdict}.`;
    });
    return [
      heading('As keys pile up'),
      text(
        `Latency of a first run and of a replay (of a random stored key) over ${first.settings.connections} connections, while the sweep works without a pause through ${formatCount(Number(first.settings.due))} rows that are due beside the stored ones.`,
      ),
      table(
        ['keys stored', 'arm', 'p50', 'p99', 'rows swept a round'],
        variants.flatMap((variant) =>
          Object.entries(arms).flatMap(([arm, name]) => {
            const summary = variant.arms[arm];
            if (summary === undefined) return [];
            if (summary.isVoid) return [[formatCount(storedIn(variant)), name, 'void', 'void', 'void']];
            return [
              [
                formatCount(storedIn(variant)),
                name,
                withSpread(summary, 'p50_ms', formatMs),
                plainly(summary, 'p99_ms', formatMs),
                plainly(summary, 'swept_rows', formatCount),
              ],
            ];
          }),
        ),
      ),
      ...(variants.length > 1 ? [points(sentences)] : []),
      chart({
        name: 'growth',
        title: 'Latency over stored keys, while the sweep runs',
        kind: 'lines',
        x: { name: 'keys stored', values: variants.map(storedIn) },
        y: { name: 'p50, ms', isLog: false },
        series: Object.entries(arms).map(([arm, name]) => ({
          name,
          values: variants.map((variant) => finite(medianOf(variant, arm, 'p50_ms'))),
        })),
      }),
    ];
  },
};
