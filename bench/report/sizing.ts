import { parseConfig } from '../../src/config.ts';
import { medianOf } from '../figures/figures.ts';
import type { Summary } from '../statistics/summary.ts';
import { type Block, points, table, text } from './blocks.ts';
import { formatBytes, formatCount, formatNumber } from './format.ts';

/** Keys a day that are looked at. */
const keysADay = [100_000, 1_000_000, 10_000_000, 100_000_000];
const dayMs = 86_400_000;
/** A key's row is swept twice: the answer, then the row. Each leaves a dead one behind. */
const sweptPerKey = 2;

/** What keys need over a day, for operations: sizes, WAL and sweeping, from what `growth` and `keys` measured. Empty without `growth`. */
export function sizingBlocks({ variants }: Summary): Block[] {
  const last = variants.filter(({ cell }) => cell === 'growth').at(-1);
  const keyBytes = medianOf(last, 'first_run', 'key_bytes');
  if (last === undefined || !Number.isFinite(keyBytes)) return [];
  const tombstoneBytes = medianOf(last, 'first_run', 'tombstone_bytes');
  const sweptPerS = medianOf(last, 'first_run', 'swept_per_s');
  const vacuumShare = medianOf(last, 'first_run', 'vacuum_scale_factor');
  const keys = variants.find(({ cell }) => cell === 'keys');
  const walBytes = medianOf(keys, 'keyed', 'wal_bytes_per_request');
  const { ttlMs, tombstoneMs } = parseConfig({}).idempotency;
  const [days, tombstoneDays] = [ttlMs / dayMs, tombstoneMs / dayMs];
  const rows = keysADay.map((count) => [
    formatCount(count),
    formatNumber((count * 1_000) / dayMs),
    formatBytes(count * days * keyBytes),
    formatBytes(count * tombstoneDays * tombstoneBytes),
    formatBytes(count * walBytes),
    `${formatNumber((count * sweptPerKey * 100 * 1_000) / (sweptPerS * dayMs))} %`,
  ]);
  const vacuums = sweptPerKey / (vacuumShare * (days + tombstoneDays));
  return [
    text(
      `Orders, with the defaults: answers are kept for ${formatNumber(days * 24)} hours, tombstones for ${formatNumber(tombstoneDays)} days. From the [results](results.md), where ${formatCount(Number(last.settings.stored))} keys were stored: a key with its answer takes ${formatBytes(keyBytes)} of table and indexes, a tombstone at least ${formatBytes(tombstoneBytes)}, a first run writes ${formatBytes(walBytes)} of WAL, and one process sweeps ${formatCount(Math.round(sweptPerS))} rows a second while it answers requests on the same cores.`,
    ),
    table(['keys a day', 'a second', 'answers', 'tombstones', 'WAL a day', 'one process sweeps'], rows),
    points([
      '“One process sweeps” is the share of the day that one sweep at that speed needs for both steps of every key: near 100 % a second process must sweep too, which they all do.',
      `Each key leaves ${sweptPerKey} dead rows for autovacuum, which comes when ${formatNumber(vacuumShare * 100)} % of the table are dead: about ${formatNumber(vacuums)} times a day, whatever the number.`,
    ]),
  ];
}
