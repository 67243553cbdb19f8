import { testToken } from '../../helpers/server.ts';
import { buildWorld } from './build-world.ts';
import { calmDown } from './calm.ts';
import { check } from './check/check.ts';
import type { Violation } from './check/record.ts';
import type { History } from './history.ts';
import type { ModelFault } from './intents.ts';
import { createLog } from './log.ts';
import { drawNetworkFault } from './network.ts';
import { agePastKeys } from './past-keys.ts';
import { createRandom } from './random.ts';
import { openScope } from './scope.ts';
import type { Snapshot } from './snapshot.ts';
import { storm } from './storm.ts';
import { poorTenant, richTenants } from './tenants.ts';
import { runClient, type Wanted, type WorkParts } from './workload.ts';

/** What a run is. */
export type RunOptions = {
  readonly seed: number;
  /** How long things break. Before it everything is started, after it everything has to come to rest. */
  readonly stormMs: number;
  readonly clients?: number;
  /** Whether this kind of fault is wanted; default: all. */
  readonly isWanted?: (kind: string) => boolean;
  /** `out`: the servers commit without asking whether the claim is still theirs. */
  readonly fence?: 'kept' | 'out';
  readonly onProgress?: (sentence: string) => void;
  /** Ends the run early, with everything put away. */
  readonly signal?: AbortSignal;
};

/** What came of it. */
export type RunResult = {
  readonly history: History;
  readonly snapshot: Snapshot;
  readonly violations: readonly Violation[];
  /** What the servers' logs say: keys taken over, late owners fenced off. */
  readonly takenOver: number;
  readonly fencedOff: number;
  /** The version of Postgres. */
  readonly postgres: string;
  /** The first errors that the servers logged: what a 500 hides from its client. */
  readonly errors: readonly string[];
};

const defaultClients = 8;
/** Share of requests to which the network does something. */
const networkShare = 0.12;
/** Lines of the servers' errors that are kept. */
const keptErrors = 40;
/** Between two sentences of progress, in milliseconds. */
const progressMs = 10_000;

/** One run from start to verdict. Rejects with the signal's reason when it is ended early. */
export async function runChaos(options: RunOptions): Promise<RunResult> {
  const { isWanted = () => true, onProgress = () => {}, signal } = options;
  const random = createRandom(options.seed);
  const log = createLog();
  const errors: string[] = [];
  const counts = { takenOver: 0, fencedOff: 0 };
  const scope = openScope();
  let trouble: ModelFault | undefined;
  try {
    const world = await buildWorld(scope, random.fork(), options.fence ?? 'kept', {
      onLine(line) {
        if (line.includes('"a key was taken over"')) counts.takenOver += 1;
        if (line.includes('"level":"error"') && errors.length < keptErrors) errors.push(line);
        if (line.includes('"a late owner was fenced off"')) counts.fencedOff += 1;
      },
      onCrash: (sentence) => log.crashes.push(sentence),
      onModelTrouble(next) {
        trouble = next;
      },
    });
    signal?.throwIfAborted();
    const startMs = performance.now();
    const nowMs = () => performance.now() - startMs;
    const tokens = new Map(
      await Promise.all(
        [...richTenants, poorTenant].map(
          async (tenant) => [tenant, await testToken({ tenant, scope: 'credits:write' })] as const,
        ),
      ),
    );
    let isCalm = false;
    const partsOf = (own = random.fork()): WorkParts => ({
      random: own,
      intents: log.intents,
      triesOf: log.triesOf,
      record: log.record,
      onSeen: log.onSeen,
      docs,
      nowMs,
      token: (tenant) => tokens.get(tenant as never) as string,
      route(silent) {
        const servers = world.slots.map(({ name }, i) => ({ name, url: world.proxies[i]?.url as string }));
        return own.pick(servers.filter(({ name }) => name !== silent));
      },
      network: () => drawNetworkFault(own, isCalm ? 0 : networkShare, isWanted),
      isWanted,
      modelTrouble: () => trouble,
    });
    const docs: WorkParts['docs'] = [];
    const again: Wanted[] = [];

    const over = new AbortController();
    const stop = signal === undefined ? over.signal : AbortSignal.any([over.signal, signal]);
    const timer = setTimeout(() => over.abort(), options.stormMs);
    const say = setInterval(() => {
      const left = Math.max(0, Math.ceil((options.stormMs - nowMs()) / 1_000));
      onProgress(`${log.intents.length} intents, ${log.faults.length} faults, ${left} s left`);
    }, progressMs);
    const clients = Array.from({ length: options.clients ?? defaultClients }, () =>
      runClient(partsOf(), stop, (wanted) => again.push(wanted)),
    );
    await Promise.all([
      storm(world, { isWanted, nowMs, record: (fault) => log.faults.push(fault), stop }).then(() => {
        isCalm = true;
      }),
      agePastKeys(world.sql, stop),
      ...clients,
    ]).finally(() => {
      clearTimeout(timer);
      clearInterval(say);
    });
    signal?.throwIfAborted();
    onProgress(`the storm is over: ${log.intents.length} intents, ${again.length} without an end`);
    const [{ postgres }] =
      (await world.sql`select split_part(current_setting('server_version'), ' ', 1) as postgres`) as unknown as [
        { postgres: string },
      ];
    const snapshot = await calmDown(world, partsOf(), again);
    return { history: log, snapshot, violations: check(log, snapshot), ...counts, errors, postgres };
  } finally {
    await scope.close();
  }
}
