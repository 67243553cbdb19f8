import { heading, points, text } from '../report/blocks.ts';
import { formatMs } from '../report/format.ts';
import { armTable, type Figures, medianOf, plainly, ratioWords, statusWords, withSpread } from './figures.ts';

const names = { sustained: 'as fast as it answers', overloaded: 'twice that rate' };

/** What is left of the goodput under overload. */
export const overloadFigures: Figures = {
  cell: 'overload',
  ratios: [
    { name: 'ratio_overloaded_to_sustained', of: 'overloaded', to: 'sustained', metric: 'goodput_per_s', aim: 0.8 },
  ],
  blocks([variant]) {
    if (variant === undefined) return [];
    const { connections, pool } = variant.settings;
    return [
      heading('Twice as much as it can do'),
      text(
        `\`POST /v1/orders\`, each with a key of its own: first from ${connections} connections that wait for their answers (pool ${pool}), then at ${variant.settings.times} times the rate this came to, whether answers come or not; a client gives up after 10 s. Goodput counts 201 alone.`,
      ),
      armTable(variant, names, [
        { heading: 'offered / s', of: (arm) => plainly(arm, 'offered_per_s') },
        { heading: 'goodput / s', of: (arm) => withSpread(arm, 'goodput_per_s') },
        { heading: 'p50 of accepted', of: (arm) => plainly(arm, 'p50_ms', formatMs) },
        { heading: 'p99 of accepted', of: (arm) => plainly(arm, 'p99_ms', formatMs) },
        { heading: 'answers', of: statusWords },
      ]),
      points([
        `Goodput under overload against the sustained one: ${ratioWords(variant.ratios.ratio_overloaded_to_sustained)}.`,
        `The p99 of what is accepted goes from ${formatMs(medianOf(variant, 'sustained', 'p99_ms'))} to ${formatMs(medianOf(variant, 'overloaded', 'p99_ms'))}. The client, which then sends twice as much, works on the same cores.`,
      ]),
    ];
  },
};
