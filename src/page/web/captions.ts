/** `docs/results/statistics.json`, as far as the page reads it. */
export type Statistics = {
  readonly environment?: {
    readonly commit: string;
    readonly date: string;
    readonly cores: number;
    readonly cpu: string;
  };
  readonly variants: readonly Variant[];
};

type Variant = {
  readonly cell: string;
  readonly settings: Readonly<Record<string, number | string>>;
  readonly arms: Readonly<Record<string, Arm>>;
};

/** `isVoid`: a check of the database failed, so the arm has no figures. */
type Arm = { readonly isVoid?: boolean; readonly median: Readonly<Record<string, number>> };

/** One chart and the words below it. */
export type Caption = {
  /** `/charts/{cell}.svg`. */
  readonly cell: string;
  readonly title: string;
  /** What is drawn, for whoever can't see it. */
  readonly alt: string;
  /** What it means; its figures come from the statistics. Undefined: nothing was measured. */
  readonly words: string | undefined;
};

/** The charts in the order in which they are shown. */
export function captionsOf(statistics: Statistics): readonly Caption[] {
  const variant = (cell: string, pick: (variants: readonly Variant[]) => Variant | undefined) =>
    pick(statistics.variants.filter((variant) => variant.cell === cell));
  const first = (variants: readonly Variant[]) => variants[0];
  const last = (variants: readonly Variant[]) => variants.at(-1);
  return [
    {
      cell: 'locking',
      title: 'A lock while a model thinks',
      alt: 'Wall time by number of writers: the row lock’s line rises with the writers, the line of versions stays low.',
      words: told(variant('locking', first), ['row_lock', 'version'], ({ settings }, lock, version) => {
        const probe = 'probe.max_ms';
        return `${count(settings.writers)} writers, each on a document of its own, one model call of ${ms(settings.llm_ms)} each, ${settings.pool} connections. With row locks all were done after ${ms(lock.wall_ms)}, with versions after ${ms(version.wall_ms)}. A reader who wanted something else waited up to ${ms(lock[probe])} and ${ms(version[probe])}: a lock occupies a connection for as long as the model thinks.`;
      }),
    },
    {
      cell: 'contention',
      title: 'Many writers on one document',
      alt: 'Model calls paid, by number of writers on one document, for four ways of writing.',
      words: told(variant('contention', last), ['version', 'rerun', 'queue'], ({ settings }, version, rerun, queue) => {
        return `${count(settings.writers)} writers start at once from one version. A 412 for each loser pays ${count(version.model_calls)} calls and keeps ${count(version.edits_kept)} of the edits; running again until all are kept pays ${count(rerun.model_calls)}; a queue pays ${count(queue.model_calls)}. Versions are for conflicts that are rare; where they are not, queue.`;
      }),
    },
    {
      cell: 'keys',
      title: 'What a key costs',
      alt: 'Requests a second: without a key, with a key, replayed, refused, and a GET.',
      words: told(variant('keys', first), ['plain', 'keyed', 'replay'], (_, plain, keyed, replay) => {
        return `An order without a key: ${count(plain.goodput_per_s)} a second. With a key: ${count(keyed.goodput_per_s)}, because the claim and the stored answer are written too. A replay: ${count(replay.goodput_per_s)}, because nothing is run.`;
      }),
    },
    {
      cell: 'tags',
      title: 'What a 304 saves',
      alt: 'Requests a second by size of the document: sent whole, 304 by version, 304 by hashing the body.',
      words: told(variant('tags', last), ['full', 'version_304', 'hash_304'], ({ settings }, full, version, hash) => {
        return `A document of ${count(Number(settings.body) / 1_000)} kB: sent whole ${count(full.goodput_per_s)} times a second, as a 304 by version ${count(version.goodput_per_s)} times. A tag that is a hash of the body reaches ${count(hash.goodput_per_s)}: the body still has to be read to learn that it need not be sent.`;
      }),
    },
    {
      cell: 'growth',
      title: 'As keys pile up',
      alt: 'Latency of a first run and of a replay by number of stored keys, while the sweep runs.',
      words: told(variant('growth', last), ['first_run', 'replay'], ({ settings }, run, replay) => {
        return `With ${count(settings.stored)} keys stored and the sweep at work, half of the first runs took at most ${ms(run.p50_ms)}, half of the replays at most ${ms(replay.p50_ms)}.`;
      }),
    },
    {
      cell: 'streams',
      title: 'From the model to its readers',
      alt: 'Time from the model to the reader by number of readers, with rows in batches and a row a token.',
      words: told(variant('streams', first), ['batched', 'row_per_token'], (_, batched, single) => {
        return `A reader is behind the model by ${ms(batched['lag.p50_ms'])} when what it says is stored in batches, by ${ms(single['lag.p50_ms'])} with a row a token; the batches need ${count(batched.event_rows_per_answer)} rows an answer instead of ${count(single.event_rows_per_answer)}. Every reader reads stored rows, so a stream can be cut anywhere and go on.`;
      }),
    },
  ];
}

type Medians = Arm['median'];

/** The words over an experiment's arms; undefined when it was not measured or one of them has no figures. */
function told(
  variant: Variant | undefined,
  names: readonly string[],
  say: (variant: Variant, ...medians: Medians[]) => string,
): string | undefined {
  const arms = names.map((name) => variant?.arms[name]);
  if (variant === undefined || arms.some((arm) => arm === undefined || arm.isVoid === true)) return undefined;
  return say(variant, ...arms.map((arm) => (arm as Arm).median));
}

const grouped = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3 });
const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

function count(value: number | string | undefined): string {
  const number = Number(value);
  return Number.isFinite(number) ? whole.format(number) : '–';
}

function ms(value: number | string | undefined): string {
  const number = Number(value);
  if (!Number.isFinite(number)) return '–';
  return number >= 1_000 ? `${grouped.format(number / 1_000)} s` : `${grouped.format(number)} ms`;
}
