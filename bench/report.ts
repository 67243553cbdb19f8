import { copyFileSync, createReadStream, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { text as read } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { figures } from './figures/index.ts';
import { renderMarkdown, renderTerminal } from './report/blocks.ts';
import { drawChart } from './report/chart.ts';
import { failureBlocks, frontBlocks, reportBlocks } from './report/document.ts';
import { type FuzzRun, fuzzBlocks } from './report/fuzz.ts';
import { headline } from './report/headline.ts';
import { withMadePart } from './report/made-part.ts';
import { sizingBlocks } from './report/sizing.ts';
import { jsonOf } from './statistics/json.ts';
import type { Summary } from './statistics/summary.ts';

/*
 * The third of three programs: reads statistics from the file it is given, or from standard input; shows them on the
 * terminal (`--json`: as one object) and with `--out DIR` writes DIR/results.md with its charts, and the parts
 * of DIR/operations.md and of the README beside DIR that are made of figures. Exit code 1: a check failed.
 */

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { json: { type: 'boolean' }, out: { type: 'string' }, raw: { type: 'string' } },
});
const [file] = positionals;
const summary = JSON.parse(await read(file === undefined ? process.stdin : createReadStream(file))) as Summary;
const blocks = reportBlocks(summary, figures);
const { out } = values;

if (out !== undefined) {
  const folder = join(out, 'results');
  mkdirSync(folder, { recursive: true });
  for (const block of blocks) {
    if (block.kind === 'chart') writeFileSync(join(folder, `${block.chart.name}.svg`), drawChart(block.chart));
  }
  writeFileSync(join(folder, 'statistics.json'), `${JSON.stringify(summary, null, 1)}\n`);
  if (values.raw !== undefined) copyFileSync(values.raw, join(folder, 'raw.ndjson'));
  const fuzzed = join(folder, 'fuzz.json');
  const document = [
    ...frontBlocks(summary),
    ...failureBlocks(summary),
    ...blocks,
    // Made by a program of its own, and told in the same document.
    ...(existsSync(fuzzed) ? fuzzBlocks(JSON.parse(readFileSync(fuzzed, 'utf8')) as FuzzRun) : []),
  ];
  writeFileSync(
    join(out, 'results.md'),
    `# Results\n\n${renderMarkdown(document, (chart) => `results/${chart.name}.svg`)}`,
  );
  // Parts of other documents are made of the same figures.
  const chart = relative(dirname(out), join(folder, 'locking.svg'));
  const sizing = renderMarkdown(sizingBlocks(summary), () => undefined);
  for (const [file, part] of [
    [join(dirname(out), 'README.md'), headline(summary, chart)],
    [join(out, 'operations.md'), sizing.trim() === '' ? undefined : sizing],
  ] as const) {
    if (existsSync(file)) writeFileSync(file, withMadePart(readFileSync(file, 'utf8'), part));
  }
}

if (values.json) {
  process.stdout.write(`${JSON.stringify(jsonOf(summary), null, 2)}\n`);
} else {
  const place =
    out === undefined ? () => undefined : (chart: { name: string }) => join(out, 'results', `${chart.name}.svg`);
  process.stdout.write(`${renderTerminal([...blocks, ...failureBlocks(summary)], place)}\n\n`);
  if (out !== undefined) process.stdout.write(`report: ${join(out, 'results.md')}\n`);
}
process.exitCode = summary.ok ? 0 : 1;
