import type { Arm, Variant } from './cell.ts';
import type { Environment } from './environment.ts';
import type { RawLine } from './lines.ts';
import type { Cluster } from './stage/cluster.ts';
import { readGauges, used } from './stage/gauges.ts';
import { startServerProcess } from './stage/server-process.ts';
import { openStage } from './stage/stage.ts';

/** What running a variant needs and whom it tells. */
export type Run = {
  readonly cluster: Cluster;
  readonly environment: Environment;
  readonly signal: AbortSignal;
  onLine(line: RawLine): void;
  onPart(what: string): void;
};

/**
 * Runs one variant on a fresh server process and a fresh database: warm-ups, then rounds in which the arms go first to
 * last and last to first in turn, then the checks. What goes wrong becomes a `fault` line; only an abort rejects.
 */
export async function runVariant(variant: Variant, run: Run): Promise<void> {
  const { cluster, environment, signal } = run;
  const common = () => ({
    at: new Date().toISOString(),
    cell: variant.cell,
    settings: variant.settings,
    environment,
  });
  run.onPart('starts');
  const database = await cluster.createDatabase();
  try {
    const server = await startServerProcess({ DATABASE_URL: database.url, ...variant.env });
    try {
      const stage = await openStage(cluster, database, server, signal);
      const { arms, check } = await variant.prepare(stage);
      for (const arm of arms) {
        run.onPart(`warms up ${arm.name}`);
        await arm.warmUp?.();
      }
      for (let round = 1; round <= variant.rounds; round += 1) {
        const inOrder: readonly Arm[] = round % 2 === 1 ? arms : [...arms].reverse();
        for (const [order, arm] of inOrder.entries()) {
          signal.throwIfAborted();
          run.onPart(`round ${round} of ${variant.rounds}, ${arm.name}`);
          await arm.before?.(round);
          const before = await readGauges(cluster, database, server);
          const { metrics, statuses } = await arm.run(round);
          const after = await readGauges(cluster, database, server);
          run.onLine({
            type: 'round',
            ...common(),
            arm: arm.name,
            round,
            order: order + 1,
            metrics: { ...metrics, ...used(before, after) },
            statuses,
          });
        }
      }
      run.onPart('checks');
      for (const result of await check()) {
        run.onLine({ type: 'check', ...common(), ...result, ok: result.expected === result.actual });
      }
    } catch (error) {
      signal.throwIfAborted();
      const said = server.output().trim();
      const message = `${error instanceof Error ? error.message : String(error)}${said === '' ? '' : `\n${said}`}`;
      run.onLine({ type: 'fault', ...common(), message });
    } finally {
      await server.stop();
    }
  } finally {
    await database.drop();
  }
}
