import { parseConfig } from '../src/config.ts';
import { sweepOnce } from '../src/idempotency/sweep.ts';
import { createSimulatedProvider } from '../src/llm/simulated.ts';
import { createLog } from '../src/log.ts';
import { type Loop, startLoop } from '../src/loop.ts';
import { startWorkers } from '../src/resources/jobs/workers.ts';
import { serve } from '../src/serve.ts';
import { startBare } from './arms/bare.ts';
import { benchProcedures } from './arms/index.ts';
import { createTurns } from './arms/queued-rewrite.ts';
import { startRowPerToken } from './arms/row-per-token.ts';
import type { Answers, Ask, FromServer, ToServer } from './stage/channel.ts';
import { createClockModel } from './stage/clock-model.ts';
import { tenant } from './stage/stage.ts';

/*
 * The server under test: the real one with the arms it is compared with mounted beside its own routes, and a channel for
 * what HTTP does not tell.
 */

const config = parseConfig(process.env);
const secret = config.auth.secret;
const databaseUrl = config.databaseUrl;
if (secret === undefined || databaseUrl === undefined) throw new Error('AUTH_SECRET and DATABASE_URL are needed');

/** More than any cell spends. */
const credits = 1_000_000_000_000;
// One model for the server's own routes and for the arms, so that calls are counted in one place.
const { simLatencyMs, simTokens } = config.llm;
const simulated = createSimulatedProvider({ latencyMs: simLatencyMs, tokens: simTokens });
const provider = process.env.BENCH_MODEL === 'clock' ? createClockModel(simLatencyMs, simTokens) : simulated;

const log = createLog(config.logLevel, (line) => process.stdout.write(line));
const serving = await serve({
  config,
  databaseUrl,
  auth: { secret },
  log,
  provider,
  seedCredits: { [tenant]: credits },
  procedures: ({ db }) => benchProcedures({ db, provider, losesUpdates: process.env.BENCH_PLANT === 'lost-update' }),
});
await createTurns(serving.db);
const bareUrl = await startBare();

let sweeping: Loop | undefined;
let swept = 0;

const answers: { [Kind in Ask['kind']]: (ask: Extract<Ask, { kind: Kind }>) => Promise<Answers[Kind]> } = {
  async usage() {
    const { user, system } = process.cpuUsage();
    return { cpuMs: (user + system) / 1_000, rssBytes: process.memoryUsage.rss() };
  },
  async sweep({ on }) {
    await sweeping?.stop();
    sweeping = undefined;
    const before = swept;
    swept = 0;
    if (on) {
      sweeping = startLoop(
        async () => {
          const counts = await sweepOnce(serving.db, config.idempotency);
          swept += counts.expired + counts.deleted;
          return { more: counts.expired + counts.deleted > 0 };
        },
        10,
        (error) => log.warn('sweeping failed', { error: String(error) }),
      );
    }
    return { swept: before };
  },
  async workers({ writer }) {
    await working?.stop();
    working = startWriter(writer);
    return { ok: true };
  },
  async model() {
    const { calls, completionTokens } = simulated.stats();
    return { calls, completionTokens };
  },
};

let working: { stop(): Promise<void> } | undefined;

function startWriter(writer: 'batched' | 'row_per_token' | 'none') {
  const { db } = serving;
  if (writer === 'none') return undefined;
  if (writer === 'row_per_token') {
    return startRowPerToken(db, provider, (error) => log.warn('a job failed', { error: String(error) }));
  }
  return startWorkers({
    db,
    provider,
    timeoutMs: config.llm.timeoutMs,
    random: Math.random,
    workers: 100,
    leaseMs: config.jobs.leaseMs,
    log,
  });
}

const tell = (message: FromServer) => process.send?.(message);

process.on('message', ({ id, ask }: ToServer) => {
  void answers[ask.kind](ask as never).then((answer) => tell({ kind: 'answer', id, answer }));
});
// Ctrl-C reaches the whole group; who started this server stops it.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => {
  void serving.stop().then(() => process.exit(0));
});
// Whoever started it is gone.
process.on('disconnect', () => process.exit(1));

tell({ kind: 'listening', url: serving.url, bareUrl });
