import { chart, heading, points, text } from '../report/blocks.ts';
import { formatBytes, formatMs } from '../report/format.ts';
import { armTable, type Figures, finite, medianOf, plainly, ratioWords, statusWords, withSpread } from './figures.ts';

const names = {
  plain: 'without a key: one INSERT',
  keyed: 'with a key: first run',
  replay: 'replay of a finished key',
  conflict: 'same key, other body (409)',
  get: 'GET by id',
};

/** What a key costs. */
export const keysFigures: Figures = {
  cell: 'keys',
  ratios: [
    { name: 'ratio_keyed_to_plain', of: 'keyed', to: 'plain', metric: 'goodput_per_s', aim: 0.5 },
    { name: 'ratio_replay_to_get', of: 'replay', to: 'get', metric: 'goodput_per_s', aim: 0.8 },
  ],
  blocks([variant]) {
    if (variant === undefined) return [];
    const { pool, connections } = variant.settings;
    return [
      heading('What an Idempotency-Key costs'),
      text(
        `\`POST /v1/orders\` with a key against the same order without one: the same pipeline (token, JSON, schema, answer), one autocommitted INSERT, no claim and no stored answer. ${connections} connections, pool ${pool}; client, server and Postgres share the machine.`,
      ),
      armTable(variant, names, [
        { heading: 'goodput / s', of: (arm) => withSpread(arm, 'goodput_per_s') },
        { heading: 'p50', of: (arm) => plainly(arm, 'p50_ms', formatMs) },
        { heading: 'p99', of: (arm) => plainly(arm, 'p99_ms', formatMs) },
        { heading: 'Node CPU µs', of: (arm) => plainly(arm, 'node_cpu_us_per_request') },
        { heading: 'Postgres CPU µs', of: (arm) => plainly(arm, 'postgres_cpu_us_per_request') },
        { heading: 'statements', of: (arm) => plainly(arm, 'statements_per_request') },
        { heading: 'WAL', of: (arm) => plainly(arm, 'wal_bytes_per_request', formatBytes) },
        { heading: 'answers', of: statusWords },
      ]),
      points([
        `With a key against without: ${ratioWords(variant.ratios.ratio_keyed_to_plain)}.`,
        `A replay against a GET by id: ${ratioWords(variant.ratios.ratio_replay_to_get)}.`,
        'CPU, statements and WAL are per request. Claims of requests that wait at the same moment share a statement, which is why a keyed request takes fewer than two.',
      ]),
      chart({
        name: 'keys',
        title: 'Requests a second, with and without a key',
        kind: 'bars',
        x: { name: '', values: Object.keys(names).map((arm) => shortNames[arm as keyof typeof names]) },
        y: { name: 'goodput / s', isLog: false },
        series: [
          {
            name: 'goodput',
            values: Object.keys(names).map((arm) => finite(medianOf(variant, arm, 'goodput_per_s'))),
          },
        ],
      }),
    ];
  },
};

const shortNames: Readonly<Record<keyof typeof names, string>> = {
  plain: 'no key',
  keyed: 'key, first run',
  replay: 'replay',
  conflict: '409',
  get: 'GET by id',
};
