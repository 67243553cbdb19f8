import type { Prepared, Variant } from './cell.ts';
import type { Environment } from './environment.ts';
import type { CheckLine, FaultLine, RawLine, RoundLine } from './lines.ts';
import type { BenchDatabase, Cluster } from './stage/cluster.ts';
import { readGauges, used } from './stage/gauges.ts';
import { type ServerProcess, startServerProcess } from './stage/server-process.ts';
import { openStage } from './stage/stage.ts';

/** What running variants needs and whom it tells. */
export type Run = {
  readonly cluster: Cluster;
  /** The server under test, bundled. */
  readonly program: string;
  readonly environment: Environment;
  readonly signal: AbortSignal;
  onLine(line: RawLine): void;
  onPart(what: string): void;
};

/** A line without what all lines of a variant have in common. */
type Own<Line> = Line extends RawLine ? Omit<Line, 'at' | 'cell' | 'settings' | 'environment'> : never;
type Write = (line: Own<RoundLine> | Own<CheckLine> | Own<FaultLine>) => void;

/** A variant on its stage, ready for its rounds. */
type Staged = {
  readonly variant: Variant;
  readonly database: BenchDatabase;
  readonly server: ServerProcess;
  readonly prepared: Prepared;
  readonly write: Write;
};

/** Variants that are measured together, in their order: those that take turns with each other, each other one alone. */
export function groupsOf(variants: readonly Variant[]): (readonly [Variant, ...Variant[]])[] {
  const groups: [Variant, ...Variant[]][] = [];
  for (const variant of variants) {
    const last = groups.at(-1);
    const isNext = variant.takesTurns === true && last?.[0].takesTurns === true && last[0].cell === variant.cell;
    if (isNext) last.push(variant);
    else groups.push([variant]);
  }
  return groups;
}

/**
 * Runs a group of variants, each on a fresh server process and a fresh database: warm-ups, then rounds in which the arms of
 * all go first to last and last to first in turn, then the checks. What goes wrong with one becomes a `fault` line of each;
 * only an abort rejects.
 */
export async function runVariants(group: readonly Variant[], run: Run): Promise<void> {
  const undo: (() => Promise<void>)[] = [];
  const writes = group.map((variant) => writerOf(variant, run));
  try {
    const staged: Staged[] = [];
    for (const [index, variant] of group.entries()) {
      staged.push(await stageOf(variant, writes[index] as Write, run, (last) => undo.push(last)));
    }
    await measureOn(staged, run);
  } catch (error) {
    run.signal.throwIfAborted();
    for (const write of writes) write({ type: 'fault', message: messageOf(error) });
  } finally {
    for (const last of undo.reverse()) await last();
  }
}

function writerOf({ cell, settings }: Variant, { environment, onLine }: Run): Write {
  return (line) => onLine({ at: new Date().toISOString(), cell, settings, environment, ...line });
}

/** Starts what a variant plays on and warms its arms up. `undo` is told of all that has to be undone, the last thing first. */
async function stageOf(
  variant: Variant,
  write: Write,
  { cluster, program, signal, onPart }: Run,
  undo: (last: () => Promise<void>) => void,
): Promise<Staged> {
  onPart('starts');
  const database = await cluster.createDatabase();
  undo(() => database.drop());
  const server = await startServerProcess(program, { DATABASE_URL: database.url, ...variant.env });
  undo(() => server.stop());
  const prepared = await withOutput(server, async () =>
    variant.prepare(await openStage(cluster, database, server, signal)),
  );
  for (const arm of prepared.arms) {
    onPart(`warms up ${arm.name}`);
    await withOutput(server, async () => arm.warmUp?.());
  }
  return { variant, database, server, prepared, write };
}

async function measureOn(staged: readonly Staged[], { cluster, signal, onPart }: Run): Promise<void> {
  const turns = staged.flatMap((on) => on.prepared.arms.map((arm, index) => ({ ...on, arm, order: index + 1 })));
  const rounds = Math.max(...staged.map(({ variant }) => variant.rounds));
  for (let round = 1; round <= rounds; round += 1) {
    const isForward = round % 2 === 1;
    for (const { arm, order, prepared, database, server, write } of isForward ? turns : [...turns].reverse()) {
      signal.throwIfAborted();
      onPart(`round ${round} of ${rounds}, ${arm.name}`);
      await withOutput(server, async () => {
        await arm.before?.(round);
        const before = await readGauges(cluster, database, server);
        const { metrics, statuses } = await arm.run(round);
        const after = await readGauges(cluster, database, server);
        write({
          type: 'round',
          arm: arm.name,
          round,
          order: isForward ? order : prepared.arms.length + 1 - order,
          metrics: { ...metrics, ...used(before, after) },
          statuses,
        });
      });
    }
  }
  onPart('checks');
  for (const { prepared, server, write } of staged) {
    const results = await withOutput(server, () => prepared.check());
    for (const result of results) write({ type: 'check', ...result, ok: result.expected === result.actual });
  }
}

/** What goes wrong is told with what the server said. */
async function withOutput<T>(server: ServerProcess, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    const said = server.output().trim();
    throw said === '' ? error : new Error(`${messageOf(error)}\n${said}`, { cause: error });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
