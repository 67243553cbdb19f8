import type { Arm, Prepared, Variant } from './cell.ts';
import type { Environment } from './environment.ts';
import type { CheckLine, FaultLine, RawLine, RoundLine } from './lines.ts';
import type { BenchDatabase, Cluster } from './stage/cluster.ts';
import { readGauges, used } from './stage/gauges.ts';
import { type ServerProcess, startServerProcess } from './stage/server-process.ts';
import { openStage } from './stage/stage.ts';

/** What running a variant needs and whom it tells. */
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

/**
 * Runs one variant on a fresh server process and a fresh database: warm-ups, then rounds in which the arms go first to
 * last and last to first in turn, then the checks. What goes wrong becomes a `fault` line; only an abort rejects.
 */
export async function runVariant(variant: Variant, run: Run): Promise<void> {
  const { cell, settings } = variant;
  const write: Write = (line) =>
    run.onLine({ at: new Date().toISOString(), cell, settings, environment: run.environment, ...line });
  run.onPart('starts');
  const database = await run.cluster.createDatabase();
  try {
    const server = await startServerProcess(run.program, { DATABASE_URL: database.url, ...variant.env });
    try {
      await measureOn(server, database, variant, run, write);
    } catch (error) {
      const said = server.output().trim();
      throw said === '' ? error : new Error(`${messageOf(error)}\n${said}`, { cause: error });
    } finally {
      await server.stop();
    }
  } catch (error) {
    run.signal.throwIfAborted();
    write({ type: 'fault', message: messageOf(error) });
  } finally {
    await database.drop();
  }
}

async function measureOn(
  server: ServerProcess,
  database: BenchDatabase,
  variant: Variant,
  { cluster, signal, onPart }: Run,
  write: Write,
): Promise<void> {
  const { arms, check }: Prepared = await variant.prepare(await openStage(cluster, database, server, signal));
  for (const arm of arms) {
    onPart(`warms up ${arm.name}`);
    await arm.warmUp?.();
  }
  for (let round = 1; round <= variant.rounds; round += 1) {
    const inOrder: readonly Arm[] = round % 2 === 1 ? arms : [...arms].reverse();
    for (const [index, arm] of inOrder.entries()) {
      signal.throwIfAborted();
      onPart(`round ${round} of ${variant.rounds}, ${arm.name}`);
      await arm.before?.(round);
      const before = await readGauges(cluster, database, server);
      const { metrics, statuses } = await arm.run(round);
      const after = await readGauges(cluster, database, server);
      write({
        type: 'round',
        arm: arm.name,
        round,
        order: index + 1,
        metrics: { ...metrics, ...used(before, after) },
        statuses,
      });
    }
  }
  onPart('checks');
  for (const result of await check()) write({ type: 'check', ...result, ok: result.expected === result.actual });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
