import type { LoadSize } from './options.ts';
import type { Stage } from './stage/stage.ts';

/** What identifies a comparison within its cell, and goes into every raw line of it. */
export type Settings = Readonly<Record<string, number | string>>;

/** Figures of one round of one arm. Units are in the names; a dot groups (`probe.max_ms`). */
export type Metrics = Readonly<Record<string, number>>;

/** One round of one arm: its figures, and how many answers had which status. */
export type Measured = { readonly metrics: Metrics; readonly statuses: Readonly<Record<string, number>> };

/** One of the things that are compared. */
export type Arm = {
  readonly name: string;
  /** Until the code is compiled and the caches are filled; thrown away. */
  warmUp?(): Promise<void>;
  /** Whatever a round needs and must not be measured with it. */
  before?(round: number): Promise<void>;
  run(round: number): Promise<Measured>;
};

/** A claim about what the database holds after all rounds. A false one voids the figures of its arm (of all, without one). */
export type Check = {
  readonly name: string;
  readonly arm?: string;
  readonly expected: number | string;
  readonly actual: number | string;
};

/** Arms on a server of their own, and what must be true afterwards. */
export type Prepared = { readonly arms: readonly Arm[]; check(): Promise<readonly Check[]> };

/** One comparison: a fresh server process on a fresh database, some arms, some rounds. */
export type Variant = {
  readonly cell: string;
  readonly settings: Settings;
  readonly rounds: number;
  /** Its rounds take turns with those of the cell's other variants: what slows the machine for a minute slows them all. */
  readonly takesTurns?: true;
  /** Variables of the server beside those that all have. */
  readonly env?: Readonly<Record<string, string>>;
  /** How long it will take, for the progress display. Milliseconds. */
  readonly estimateMs: number;
  prepare(stage: Stage): Promise<Prepared>;
};

/** What the command line asks of a cell. */
export type CellOptions = {
  readonly size: LoadSize;
  readonly rounds: number | undefined;
  readonly pool: number | undefined;
  readonly concurrency: number | undefined;
  readonly llmMs: number | undefined;
  /** A fault that the checks must find; for the tests of the benchmark. */
  readonly plant: 'lost-update' | undefined;
};

/** A subject of comparison. */
export type Cell = {
  readonly name: string;
  /** What it compares, for `--list`. */
  readonly title: string;
  /** False: only with `--quick`, `--full` or by name, for the time it takes. */
  readonly isUsual: boolean;
  /** The options that mean something to it. */
  readonly takes: readonly ('pool' | 'concurrency' | 'llm-ms' | 'plant')[];
  variants(options: CellOptions): readonly Variant[];
};
