import type { Figures } from '../figures/figures.ts';
import type { Summary } from '../statistics/summary.ts';
import { type Block, heading, points, text } from './blocks.ts';

/** Every measured cell, told by its figures. */
export function reportBlocks(summary: Summary, figures: readonly Figures[]): Block[] {
  return figures.flatMap(({ cell, blocks }) => {
    const variants = summary.variants.filter((variant) => variant.cell === cell);
    return variants.length === 0 ? [] : [...blocks(variants)];
  });
}

/** What stands before the cells of the document: where the figures come from and how to read them. */
export function frontBlocks({ environment, variants }: Summary): Block[] {
  if (environment === undefined) return [text('Nothing was measured.')];
  const rows = [
    ['commit', environment.commit],
    ['date', environment.date],
    ['Node', environment.node],
    [
      'Postgres',
      `${environment.postgres} (${environment.database}); fsync ${environment.fsync}, synchronous_commit ${environment.synchronous_commit}, shared_buffers ${environment.shared_buffers}`,
    ],
    [
      'machine',
      `${environment.cores} cores of ${environment.cpu}, ${environment.memory_gb} GB, ${environment.platform}`,
    ],
  ];
  const rounds = Math.max(...variants.flatMap(({ arms }) => Object.values(arms).map((arm) => arm.rounds)));
  return [
    text(
      'Made by `npm run bench` and not edited by hand: [raw lines](results/raw.ndjson) → [statistics](results/statistics.json) → this page. `bench/README.md` says how each cell is measured and what its fields mean.',
    ),
    points(rows.map(([what, value]) => `${what}: ${value}`)),
    text(
      `Medians, with the smallest and the largest of up to ${rounds} rounds in parentheses. Each comparison has a server process and a database of its own; the arms take turns, first to last and last to first; warm-ups are thrown away. After the rounds the database is compared with what was acknowledged, and a comparison that fails there has no figures. Client, server and Postgres share the cores: ratios travel to other machines, rates do not.`,
    ),
  ];
}

/** What did not hold. Empty when everything did. */
export function failureBlocks({ variants }: Summary): Block[] {
  const failures = variants.flatMap((variant) => {
    const where = `${variant.cell} (${Object.entries(variant.settings)
      .map(([name, value]) => `${name} ${value}`)
      .join(', ')})`;
    const failed = variant.checks
      .filter((check) => !check.ok)
      .map(
        (check) =>
          `${where}${check.arm === undefined ? '' : `, ${check.arm}`}: ${check.name}: expected ${check.expected}, found ${check.actual}`,
      );
    return variant.fault === undefined ? failed : [...failed, `${where}: ${variant.fault}`];
  });
  if (failures.length === 0) return [];
  return [
    heading('What did not hold'),
    text('These checks failed; the figures they are about are void.'),
    points(failures),
  ];
}
