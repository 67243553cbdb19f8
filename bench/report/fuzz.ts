import { type Block, heading, points, table, text } from './blocks.ts';
import { formatCount, formatMs } from './format.ts';

/** What `npm run fuzz -- --write DIR` leaves in DIR/results/fuzz.json. */
export type FuzzRun = {
  readonly origin: {
    readonly commit: string;
    readonly date: string;
    readonly node: string;
    readonly postgres: string;
    readonly machine: string;
  };
  readonly runs: number;
  readonly seed: number;
  /** Answers by status; `closed`: the connection ended without one. */
  readonly counts: Readonly<Record<string, number>>;
  /** Requests that were answered 500, or not in time. */
  readonly faults: number;
  readonly slowest_ms: number;
  /** Heap in use after a collection, when a tenth of the requests was through and at the end. Megabytes. */
  readonly heap_mb: { readonly early: number; readonly end: number };
};

/** What strangers' requests came to, in a document that otherwise tells of the cells. */
export function fuzzBlocks({ origin, ...run }: FuzzRun): Block[] {
  return [
    heading('Random requests'),
    text(
      `Made by \`npm run fuzz -- --runs ${run.runs} --seed ${run.seed}\` at commit ${origin.commit} (${origin.date}, Node ${origin.node}, Postgres ${origin.postgres}, ${origin.machine}): requests made from the contract and then bent, in their method, path, query, headers and body, eight at a time.`,
    ),
    table(
      ['answer', 'requests'],
      Object.entries(run.counts)
        .sort(([a], [b]) => a.localeCompare(b))
        .map(([status, count]) => [status === 'closed' ? 'none: no HTTP' : status, formatCount(count)]),
    ),
    points([
      `${formatCount(run.runs)} requests, ${run.faults === 0 ? 'no 500 and no hang' : `**${formatCount(run.faults)} of them a 500 or a hang**`}; the slowest took ${formatMs(run.slowest_ms)}.`,
      `The heap held ${run.heap_mb.early.toFixed(1)} MB after a tenth of them and ${run.heap_mb.end.toFixed(1)} MB at the end, the client's part included.`,
    ]),
  ];
}
