import { parseConfig } from '../src/config.ts';
import { sweepOnce } from '../src/idempotency/sweep.ts';
import { createLog } from '../src/log.ts';
import { type Loop, startLoop } from '../src/loop.ts';
import { serve } from '../src/serve.ts';
import { startBare } from './arms/bare.ts';
import { benchProcedures } from './arms/index.ts';
import type { Answers, Ask, FromServer, ToServer } from './stage/channel.ts';

/*
 * The server under test: the real one with the arms it is compared with mounted beside its own routes, and a channel for
 * what HTTP does not tell.
 */

const config = parseConfig(process.env);
const secret = config.auth.secret;
const databaseUrl = config.databaseUrl;
if (secret === undefined || databaseUrl === undefined) throw new Error('AUTH_SECRET and DATABASE_URL are needed');

const log = createLog(config.logLevel, (line) => process.stdout.write(line));
const serving = await serve({
  config,
  databaseUrl,
  auth: { secret },
  log,
  procedures: (parts) => benchProcedures({ ...parts, config }),
});
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
  async model() {
    return { calls: 0, completionTokens: 0 };
  },
};

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
