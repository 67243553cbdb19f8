import type { Block } from '../report/blocks.ts';
import { table } from '../report/blocks.ts';
import { formatCount, formatNumber } from '../report/format.ts';
import type { ArmSummary, RatioDefinition, RatioSummary, VariantSummary } from '../statistics/summary.ts';

/** How a cell is told: which ratios are made of its rounds, and what its part of the report says. */
export type Figures = {
  readonly cell: string;
  readonly ratios: readonly Omit<RatioDefinition, 'cell'>[];
  blocks(variants: readonly VariantSummary[]): readonly Block[];
};

/** A column of a table of arms. */
export type Column = { readonly heading: string; readonly of: (arm: ArmSummary) => string };

/** A median with its spread: `5,210 (5,100–5,300)`; without one where a single round was measured. */
export function withSpread(arm: ArmSummary, metric: string, format = formatNumber): string {
  const value = arm.median[metric];
  if (value === undefined) return '–';
  const [min, max] = arm.spread[metric] ?? [value, value];
  return arm.rounds < 2 ? format(value) : `${format(value)} (${format(min)}–${format(max)})`;
}

/** A median alone. */
export function plainly(arm: ArmSummary, metric: string, format = formatNumber): string {
  const value = arm.median[metric];
  return value === undefined ? '–' : format(value);
}

/** A table of a variant's arms. A void arm has no figures. `names`: how arms are called, in the order of the rows. */
export function armTable(
  variant: VariantSummary,
  names: Readonly<Record<string, string>>,
  columns: readonly Column[],
): Block {
  const rows = Object.entries(names).flatMap(([arm, name]) => {
    const summary = variant.arms[arm];
    if (summary === undefined) return [];
    return [[name, ...columns.map((column) => (summary.isVoid ? 'void' : column.of(summary)))]];
  });
  return table(['', ...columns.map((column) => column.heading)], rows);
}

/** An arm's median, or NaN when it is void or missing. */
export function medianOf(variant: VariantSummary | undefined, arm: string, metric: string): number {
  const summary = variant?.arms[arm];
  return summary === undefined || summary.isVoid ? Number.NaN : (summary.median[metric] ?? Number.NaN);
}

/** A ratio as a sentence's end: `0.62 (0.58–0.66), aim at least 0.5: reached`. */
export function ratioWords(ratio: RatioSummary | undefined): string {
  if (ratio === undefined) return 'no figure';
  const [min, max] = ratio.spread;
  const range = min === max ? '' : ` (${formatNumber(min)}–${formatNumber(max)})`;
  const aim = ratio.aim === undefined ? '' : `, aim at least ${ratio.aim}: ${verdict(ratio.reached === true)}`;
  return `**${formatNumber(ratio.median)}**${range}${aim}`;
}

/** All answers by status: `201 × 5,000, 412 × 30`. */
export function statusWords(arm: ArmSummary): string {
  return Object.entries(arm.statuses)
    .map(([status, times]) => `${status} × ${formatCount(times)}`)
    .join(', ');
}

/** A figure for a chart: null where there is none. */
export function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}

/** `reached` or `missed`. */
export function verdict(reached: boolean): string {
  return reached ? 'reached' : 'missed';
}
