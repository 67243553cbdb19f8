import { heading, points, text } from '../report/blocks.ts';
import { formatMs } from '../report/format.ts';
import { armTable, type Figures, plainly, ratioWords, withSpread } from './figures.ts';

const names = {
  bare: 'bare node:http handler',
  pipeline: 'pipeline, plainest route (/healthz)',
  authenticated: 'pipeline, GET with a token, no database',
};

/** What the pipeline costs. */
export const httpFigures: Figures = {
  cell: 'http',
  ratios: [
    { name: 'ratio_pipeline_to_bare', of: 'pipeline', to: 'bare', metric: 'goodput_per_s', aim: 0.8 },
    { name: 'ratio_authenticated_to_bare', of: 'authenticated', to: 'bare', metric: 'goodput_per_s' },
  ],
  blocks([variant]) {
    if (variant === undefined) return [];
    return [
      heading('What the pipeline costs'),
      text(
        `Trace, routing, answer and log against a handler that writes the same body, ${variant.settings.connections} connections. The log is at \`warn\`: at \`info\` every request writes a line.`,
      ),
      armTable(variant, names, [
        { heading: 'goodput / s', of: (arm) => withSpread(arm, 'goodput_per_s') },
        { heading: 'p50', of: (arm) => plainly(arm, 'p50_ms', formatMs) },
        { heading: 'p99', of: (arm) => plainly(arm, 'p99_ms', formatMs) },
        { heading: 'Node CPU µs', of: (arm) => plainly(arm, 'node_cpu_us_per_request') },
        { heading: 'client CPU µs', of: (arm) => plainly(arm, 'client_cpu_us_per_request') },
      ]),
      points([
        `Plainest route against bare: ${ratioWords(variant.ratios.ratio_pipeline_to_bare)}.`,
        `With a token against bare: ${ratioWords(variant.ratios.ratio_authenticated_to_bare)}.`,
        'Where the client needs more CPU than the server, it is the client that is measured: then the ratio of the CPU columns says more than that of the rates.',
      ]),
    ];
  },
};
