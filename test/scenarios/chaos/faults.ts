import { setTimeout as sleep } from 'node:timers/promises';
import { type Window, windows } from './failpoints.ts';
import { stopPostgres } from './postgres-control.ts';
import type { ServerSlot } from './server-slot.ts';
import { stopMs, windowStopMs } from './timing.ts';
import type { World } from './world.ts';

/** A way to break something and put it right again. */
export type Trouble = {
  readonly kind: string;
  /** One sentence for `--help` and the page. */
  readonly what: string;
  /** Troubles of one place come one after the other; each server is a place. */
  readonly place: 'server' | 'database' | 'edge';
  /** Breaks it and mends it. False: it did not come to it. */
  run(world: World, slot: ServerSlot): Promise<boolean>;
};

/** How long a narrow window is waited for. Milliseconds. */
const windowLimitMs = 4_000;
/** How long a server is tried to be started, while Postgres may be away. Milliseconds. */
const startLimitMs = 60_000;

/** One in so many is killed in the window, the others stand still: only they come back too late. */
const killEvery = 3;

const whatOfWindow: { readonly [W in Window]: string } = {
  after_claim: 'when a claim has just been committed',
  after_model: 'when the model has answered and nobody knows yet',
  before_commit: 'just before the commit',
  after_commit: 'after the commit and before the answer',
  in_renewal: 'while leases are renewed',
  in_sweep: 'while old keys are swept',
};

const serverTroubles: readonly Trouble[] = [
  {
    kind: 'kill_server',
    what: 'a server process is killed (-9) and started again',
    place: 'server',
    async run({ random }, slot) {
      await slot.end('SIGKILL');
      await sleep(random.between(0, 300));
      return await startAgain(slot);
    },
  },
  {
    kind: 'drain_server',
    what: 'a server process is asked to end (SIGTERM), as in a deploy, and started again',
    place: 'server',
    async run(_world, slot) {
      await slot.end('SIGTERM');
      return await startAgain(slot);
    },
  },
  {
    kind: 'stop_server',
    what: 'a server process stands still for longer than its leases and goes on',
    place: 'server',
    async run(_world, slot) {
      slot.stop();
      await sleep(stopMs);
      slot.goOn();
      return true;
    },
  },
  ...windows.map((window): Trouble => {
    let times = 0;
    return {
      kind: `lost_${window}`,
      what: `a server process is killed, or stopped for longer than its leases, ${whatOfWindow[window]}`,
      place: 'server',
      async run(_world, slot) {
        times += 1;
        const isKill = times % killEvery === 0;
        if (!(await slot.arm(window, isKill ? 'SIGKILL' : 'SIGSTOP', windowLimitMs))) return false;
        if (isKill) {
          await slot.ended();
          return await startAgain(slot);
        }
        await sleep(windowStopMs);
        slot.goOn();
        return true;
      },
    };
  }),
];

const databaseTroubles: readonly Trouble[] = [
  {
    kind: 'restart_postgres_fast',
    what: 'Postgres is restarted: sessions are ended, everything is written',
    place: 'database',
    async run({ postgres }) {
      await postgres.stop();
      await postgres.start();
      return true;
    },
  },
  {
    kind: 'restart_postgres_immediate',
    what: 'Postgres ends at once, as in a crash, and recovers',
    place: 'database',
    async run({ postgres }) {
      process.kill(postgres.current.pid, 'SIGQUIT');
      await postgres.start();
      return true;
    },
  },
  {
    kind: 'terminate_sessions',
    what: 'sessions are ended by `pg_terminate_backend`',
    place: 'database',
    async run({ sql }) {
      const rows = await sql`
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and application_name = 'retry-safe' and random() < 0.7`;
      return rows.length > 0;
    },
  },
  {
    kind: 'cut_database',
    what: 'a connection to Postgres is cut in the middle of a message',
    place: 'database',
    run: ({ wire }) => Promise.race([wire.cutHalfWay().then(() => true), sleep(2_000, false)]),
  },
  {
    kind: 'freeze_database',
    what: 'nothing goes through between the servers and Postgres for a while',
    place: 'database',
    async run({ wire, random }) {
      wire.freeze(true);
      await sleep(random.between(300, 1_500));
      wire.freeze(false);
      return true;
    },
  },
  {
    kind: 'stop_postgres',
    what: 'Postgres stands still for longer than the leases and goes on',
    place: 'database',
    async run({ postgres }) {
      const goOn = stopPostgres(postgres.current.pid);
      await sleep(stopMs);
      goOn();
      return true;
    },
  },
];

const edgeTroubles: readonly Trouble[] = [
  {
    kind: 'cut_clients',
    what: 'all connections between the clients and a server are cut',
    place: 'edge',
    async run({ proxies, random }) {
      random.pick(proxies).cutAll();
      return true;
    },
  },
  ...(['model_fails', 'model_stalls'] as const).map(
    (kind): Trouble => ({
      kind,
      what: kind === 'model_fails' ? 'model calls fail, at once or half-way' : 'model calls fall silent',
      place: 'edge',
      async run({ troubleModel, random }) {
        troubleModel(kind);
        await sleep(random.between(300, 1_000));
        troubleModel(undefined);
        return true;
      },
    }),
  ),
];

/** Everything that happens to a run, beside what the network does to single requests. */
export const troubles: readonly Trouble[] = [...serverTroubles, ...databaseTroubles, ...edgeTroubles];

/** Starts a server; while Postgres is away it ends at once, and is started again as a supervisor would. */
async function startAgain(slot: ServerSlot): Promise<true> {
  const deadlineMs = performance.now() + startLimitMs;
  for (;;) {
    try {
      await slot.start();
      return true;
    } catch (error) {
      if (performance.now() > deadlineMs) throw error;
      await sleep(200);
    }
  }
}
