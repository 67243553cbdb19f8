import type { Summary } from '../statistics/summary.ts';
import { formatCount, formatMs } from './format.ts';

const begin = '<!-- made by npm run bench -->';
const end = '<!-- end -->';

/** The README with its headline made anew between its two marks; unchanged where it has none or nothing was measured for it. */
export function withHeadline(readme: string, summary: Summary, chartPlace: string): string {
  const words = headline(summary);
  const from = readme.indexOf(begin);
  const to = readme.indexOf(end, from);
  if (words === undefined || from === -1 || to === -1) return readme;
  return `${readme.slice(0, from + begin.length)}\n\n![Wall time by writers](${chartPlace})\n\n${words} [All figures](docs/results.md).\n\n${readme.slice(to)}`;
}

/** The chapter's comparison in one sentence. */
function headline({ variants }: Summary): string | undefined {
  const locking = variants.find((variant) => variant.cell === 'locking');
  const { row_lock, version } = locking?.arms ?? {};
  if (locking === undefined || row_lock === undefined || version === undefined) return undefined;
  if (row_lock.isVoid || version.isVoid) return undefined;
  const { writers, pool, llm_ms } = locking.settings;
  const wall = (arm: typeof version) => formatMs(arm.median.wall_ms ?? Number.NaN);
  const slowest = (arm: typeof version) => formatMs(arm.median['probe.max_ms'] ?? Number.NaN);
  return `${formatCount(Number(writers))} writers, each on a document of its own, a model call of ${formatMs(Number(llm_ms))} in the middle, a pool of ${pool} connections: **${wall(row_lock)}** with row locks, **${wall(version)}** with versions; the slowest unrelated GET meanwhile took ${slowest(row_lock)} and ${slowest(version)}.`;
}
