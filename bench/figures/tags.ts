import { chart, heading, points, table, text } from '../report/blocks.ts';
import { formatBytes, formatMs, formatNumber, formatTimes } from '../report/format.ts';
import { type Figures, finite, medianOf, plainly, withSpread } from './figures.ts';

const arms = {
  full: '200, sent whole',
  version_304: '304 by version',
  hash_304: '304 by hashing the body',
};

/** What a 304 saves and what it does not. */
export const tagsFigures: Figures = {
  cell: 'tags',
  ratios: [
    { name: 'ratio_version_304_to_full', of: 'version_304', to: 'full', metric: 'goodput_per_s' },
    { name: 'ratio_hash_304_to_full', of: 'hash_304', to: 'full', metric: 'goodput_per_s' },
  ],
  blocks(variants) {
    const [first] = variants;
    const last = variants.at(-1);
    if (first === undefined || last === undefined) return [];
    const bodyOf = (variant: typeof first) => Number(variant.settings.body);
    const part = (metric: string) => medianOf(last, 'hash_304', metric) / medianOf(last, 'full', metric);
    const timesOf = (variant: typeof first) =>
      formatTimes(variant.ratios.ratio_version_304_to_full?.median ?? Number.NaN);
    return [
      heading('What a 304 saves, and what it does not'),
      text(
        `The same documents over ${first.settings.connections} connections: sent whole, and with \`If-None-Match\` where the tag is the version column, and where it is a hash of the body, as web frameworks make it by default. CPU and database time are per request.`,
      ),
      table(
        ['body', 'answer', 'goodput / s', 'p50', 'on the wire', 'Node CPU µs', 'database µs'],
        variants.flatMap((variant) =>
          Object.entries(arms).flatMap(([arm, name]) => {
            const summary = variant.arms[arm];
            if (summary === undefined) return [];
            const body = formatBytes(bodyOf(variant));
            if (summary.isVoid) return [[body, name, 'void', 'void', 'void', 'void', 'void']];
            return [
              [
                body,
                name,
                withSpread(summary, 'goodput_per_s'),
                plainly(summary, 'p50_ms', formatMs),
                plainly(summary, 'wire_bytes_per_request', formatBytes),
                plainly(summary, 'node_cpu_us_per_request'),
                plainly(summary, 'db_us_per_request'),
              ],
            ];
          }),
        ),
      ),
      points([
        `A 304 by version is answered **${timesOf(last)}** as often as the whole document at ${formatBytes(bodyOf(last))}, ${timesOf(first)} at ${formatBytes(bodyOf(first))}: what is left is the request itself (token, routing, one look at the row), which no 304 saves.`,
        `Hashing saves the wire alone. At ${formatBytes(bodyOf(last))} such a 304 takes ${formatNumber(part('node_cpu_us_per_request'))} of the Node CPU and ${formatNumber(part('db_us_per_request'))} of the database time of sending everything: the body is still read and serialised.`,
      ]),
      chart({
        name: 'tags',
        title: 'Requests a second by size of the document',
        kind: 'bars',
        x: { name: 'body', values: variants.map((variant) => formatBytes(bodyOf(variant))) },
        y: { name: 'goodput / s', isLog: true },
        series: Object.entries(arms).map(([arm, name]) => ({
          name,
          values: variants.map((variant) => finite(medianOf(variant, arm, 'goodput_per_s'))),
        })),
      }),
    ];
  },
};
