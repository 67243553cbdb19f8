import { parseArgs } from 'node:util';

/**
 * How much is measured. `smoke`: each arm for a moment, for the tests; `quick`: figures to look at, not to cite;
 * `usual`: what `npm run bench` does; `full`: the large settings too.
 */
export type LoadSize = 'smoke' | 'quick' | 'usual' | 'full';

/** What a cell is chosen by and which options it takes. */
export type CellNames = readonly {
  readonly name: string;
  readonly isUsual: boolean;
  readonly takes: readonly string[];
}[];

/** A command line that can be run. */
export type RunOptions = {
  readonly cells: readonly string[];
  readonly size: LoadSize;
  readonly rounds: number | undefined;
  readonly pool: number | undefined;
  readonly concurrency: number | undefined;
  readonly llmMs: number | undefined;
  readonly plant: 'lost-update' | undefined;
  readonly json: boolean;
  /** Where the report is written. Undefined: to the terminal alone. */
  readonly out: string | undefined;
};

/** What the command line asks for; `refused` says in a sentence what is wrong with it. */
export type Command =
  | { readonly kind: 'run'; readonly options: RunOptions }
  | { readonly kind: 'list' | 'help' }
  | { readonly kind: 'refused'; readonly sentence: string };

/** `--help`. */
export const usage = `Usage: npm run bench -- [CELL...] [options]

Compares what this server does with the ways it does not take: each cell on a fresh server process and a fresh database.
Without a CELL most are run (under 4 minutes) and the report is written to docs/; with one it goes to the terminal alone.

  --list              the cells and what each compares
  --quick             less of everything: each cell in under 45 seconds
  --full              every cell with its large settings (10^7 keys, 1,000 row locks): about half an hour
  --rounds N          rounds of every arm, 1 to 100
  --pool N            database connections of the server, 1 to 150      (locking, contention, keys, overload)
  --concurrency N     writers or connections at a time, 1 to 1000       (locking, contention, keys, overload)
  --llm-ms N          how long the model takes, 10 to 60000 ms          (locking, contention)
  --json              one JSON object on standard output, nothing else
  --out DIR           write results.md, charts and raw lines to DIR
  --help              this text

The database is the embedded one, or the server at DATABASE_URL: databases named bench_… are made on it and dropped.
`;

const flags = {
  list: { type: 'boolean' },
  quick: { type: 'boolean' },
  full: { type: 'boolean' },
  smoke: { type: 'boolean' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  rounds: { type: 'string' },
  pool: { type: 'string' },
  concurrency: { type: 'string' },
  'llm-ms': { type: 'string' },
  plant: { type: 'string' },
  out: { type: 'string' },
} as const;

const ranges = {
  rounds: [1, 100],
  pool: [1, 150],
  concurrency: [1, 1_000],
  'llm-ms': [10, 60_000],
} as const;

/** Where the report goes when everything is measured. */
const usualOut = 'docs';

/** Reads a command line, given without node and script. */
export function parseOptions(argv: readonly string[], cells: CellNames): Command {
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parse(argv);
  } catch (error) {
    return refused(`${(error as Error).message.replace(/\.? To specify.*$/s, '')}; --help lists what there is.`);
  }
  const { values, positionals } = parsed;
  if (values.help) return { kind: 'help' };
  if (values.list) return { kind: 'list' };
  const sizes = (['smoke', 'quick', 'full'] as const).filter((name) => values[name]);
  if (sizes.length > 1) return refused(`--${sizes[0]} and --${sizes[1]} are both given; take one of them.`);
  for (const name of positionals) {
    if (!cells.some((cell) => cell.name === name)) {
      return refused(`There is no cell "${name}"; there are ${cells.map((cell) => cell.name).join(', ')}.`);
    }
  }
  const chosen = cells.filter((cell) =>
    positionals.length === 0 ? cell.isUsual || sizes.length > 0 : positionals.includes(cell.name),
  );
  const numbers: Partial<Record<keyof typeof ranges, number>> = {};
  for (const name of Object.keys(ranges) as (keyof typeof ranges)[]) {
    const given = values[name];
    if (given === undefined) continue;
    const [min, max] = ranges[name];
    const value = /^[0-9]{1,6}$/.test(given) ? Number(given) : Number.NaN;
    if (!(value >= min && value <= max)) {
      return refused(`--${name}: got "${given}"; it takes a whole number from ${min} to ${max}.`);
    }
    if (name !== 'rounds' && !chosen.some((cell) => cell.takes.includes(name))) {
      return refused(`--${name} means nothing to ${chosen.map((cell) => cell.name).join(', ')}.`);
    }
    numbers[name] = value;
  }
  if (values.plant !== undefined && values.plant !== 'lost-update') {
    return refused(`--plant: got "${values.plant}"; it takes lost-update.`);
  }
  if (values.out === '') return refused('--out: got nothing; it takes a folder.');
  const isWhole = positionals.length === 0 && Object.keys(numbers).length === 0 && values.plant === undefined;
  return {
    kind: 'run',
    options: {
      cells: chosen.map((cell) => cell.name),
      size: sizes[0] ?? 'usual',
      rounds: numbers.rounds,
      pool: numbers.pool,
      concurrency: numbers.concurrency,
      llmMs: numbers['llm-ms'],
      plant: values.plant,
      json: values.json ?? false,
      out: values.out ?? (isWhole && !values.json && !values.quick && !values.smoke ? usualOut : undefined),
    },
  };
}

function parse(argv: readonly string[]) {
  return parseArgs({ args: [...argv], options: flags, allowPositionals: true });
}

function refused(sentence: string): Command {
  return { kind: 'refused', sentence };
}
