import type { ChartDefinition } from './chart.ts';

/** A piece of a report, before it is known where it is shown. */
export type Block =
  | { readonly kind: 'heading'; readonly text: string }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'points'; readonly items: readonly string[] }
  | { readonly kind: 'table'; readonly headings: readonly string[]; readonly rows: readonly (readonly string[])[] }
  | { readonly kind: 'chart'; readonly chart: ChartDefinition };

/** Shorthands, so that a cell's figures read like the report. */
export const heading = (text: string): Block => ({ kind: 'heading', text });
export const text = (words: string): Block => ({ kind: 'text', text: words });
export const points = (items: readonly string[]): Block => ({ kind: 'points', items });
export const table = (headings: readonly string[], rows: readonly (readonly string[])[]): Block => ({
  kind: 'table',
  headings,
  rows,
});
export const chart = (definition: ChartDefinition): Block => ({ kind: 'chart', chart: definition });

/** Where charts lie, as seen from the document. */
export type ChartPlace = (chart: ChartDefinition) => string | undefined;

/** Characters of a line of prose on a terminal. */
const terminalWidth = 100;

/** Blocks for a terminal; charts are named where they were written. */
export function renderTerminal(blocks: readonly Block[], placeOf: ChartPlace): string {
  return renderAll(blocks, (block) => {
    switch (block.kind) {
      case 'heading':
        return `\n${block.text}\n${'─'.repeat(block.text.length)}`;
      case 'text':
        return wrap(plain(block.text), '');
      case 'points':
        return block.items.map((item) => wrap(plain(item), '  ', '- ')).join('\n');
      case 'table':
        return alignTable(block.headings, block.rows);
      case 'chart': {
        const place = placeOf(block.chart);
        return place === undefined ? '' : `chart: ${place}`;
      }
    }
  });
}

/** Blocks as Markdown. */
export function renderMarkdown(blocks: readonly Block[], placeOf: ChartPlace): string {
  const body = renderAll(blocks, (block) => {
    switch (block.kind) {
      case 'heading':
        return `## ${block.text}`;
      case 'text':
        return block.text;
      case 'points':
        return block.items.map((item) => `- ${item}`).join('\n');
      case 'table':
        return markdownTable(block.headings, block.rows);
      case 'chart': {
        const place = placeOf(block.chart);
        return place === undefined ? '' : `![${block.chart.title}](${place})`;
      }
    }
  });
  return `${body}\n`;
}

function renderAll(blocks: readonly Block[], render: (block: Block) => string): string {
  return blocks
    .map(render)
    .filter((part) => part !== '')
    .join('\n\n');
}

/** Columns padded to their widest cell; the first to the left, the figures to the right. */
export function alignTable(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [headings, ...rows].map((row) => row.map(plain));
  const widths = headings.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]) =>
    `  ${widths
      .map((width, column) => {
        const cell = row[column] ?? '';
        return column === 0 ? cell.padEnd(width) : cell.padStart(width);
      })
      .join('   ')}`.trimEnd();
  const [head = [], ...rest] = all;
  return [line(head), `  ${widths.map((width) => '─'.repeat(width)).join('   ')}`, ...rest.map(line)].join('\n');
}

function markdownTable(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [
    line(headings),
    `|${headings.map((_, column) => (column === 0 ? '---|' : '---:|')).join('')}`,
    ...rows.map(line),
  ].join('\n');
}

/** Markdown's marks taken off. */
function plain(words: string): string {
  return words.replaceAll(/\*\*|`/g, '').replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1');
}

function wrap(words: string, indent: string, first = ''): string {
  const lines: string[] = [];
  let line = first;
  for (const word of words.split(' ')) {
    if (line.length + word.length + 1 > terminalWidth && line.trim() !== '') {
      lines.push(line);
      line = `${indent}${word}`;
    } else line += line === '' || line === first ? word : ` ${word}`;
  }
  return [...lines, line].join('\n');
}
