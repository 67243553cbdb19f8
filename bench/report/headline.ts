import type { Summary } from '../statistics/summary.ts';
import { formatCount, formatMs } from './format.ts';

/** The chapter's comparison for the README: its chart and one sentence; undefined when it was not measured. */
export function headline({ variants }: Summary, chartPlace: string): string | undefined {
  const locking = variants.find((variant) => variant.cell === 'locking');
  const { row_lock, version } = locking?.arms ?? {};
  if (locking === undefined || row_lock === undefined || version === undefined) return undefined;
  if (row_lock.isVoid || version.isVoid) return undefined;
  const { writers, pool, llm_ms } = locking.settings;
  const wall = (arm: typeof version) => formatMs(arm.median.wall_ms ?? Number.NaN);
  const slowest = (arm: typeof version) => formatMs(arm.median['probe.max_ms'] ?? Number.NaN);
  const words = `${formatCount(Number(writers))} writers, each on a document of its own, a model call of ${formatMs(Number(llm_ms))} in the middle, a pool of ${pool} connections: **${wall(row_lock)}** with row locks, **${wall(version)}** with versions; the slowest unrelated GET meanwhile took ${slowest(row_lock)} and ${slowest(version)}.`;
  return `![Wall time by writers](${chartPlace})\n\n${words} [All figures](docs/results.md).`;
}
