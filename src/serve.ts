import type { AddressInfo } from 'node:net';
import { type App, createApp } from './app.ts';
import { type AuthSettings, createAuthenticate } from './auth/tokens.ts';
import type { Config } from './config.ts';
import { seedCredits } from './credits/books.ts';
import { releaseExpiredOnce } from './credits/holds.ts';
import { type Database, openDatabase } from './db/pool.ts';
import type { Mounted } from './handler.ts';
import { createHttpServer, defaultLimits } from './http/server.ts';
import { createKeyed, type Keyed } from './idempotency/keyed.ts';
import { sweepOnce } from './idempotency/sweep.ts';
import { pressureOf, watchLoop } from './limits/pressure.ts';
import { takeToken } from './limits/token-bucket.ts';
import { createOpenAiProvider } from './llm/openai.ts';
import type { Provider } from './llm/provider.ts';
import { createSimulatedProvider } from './llm/simulated.ts';
import { errorFields, type Log } from './log.ts';
import { type Loop, startLoop } from './loop.ts';
import { createMetrics } from './metrics.ts';
import { healthRoutes, referenceRoutes } from './open-routes.ts';
import { contract } from './protocol/contract.ts';
import { problem } from './protocol/errors.ts';
import { creditProcedures } from './resources/credits/procedures.ts';
import { docProcedures } from './resources/docs/procedures.ts';
import { rewriteProcedures } from './resources/docs/rewrite.ts';
import { type Jobs, startJobs } from './resources/jobs/jobs.ts';
import { keyProcedures } from './resources/keys/procedures.ts';
import { orderProcedures } from './resources/orders/procedures.ts';
import { createPager } from './resources/page.ts';

/** What a running server is made from; the database is migrated. */
export type ServeOptions = {
  readonly config: Config;
  readonly databaseUrl: string;
  readonly auth: AuthSettings;
  readonly log: Log;
  /** Procedures beside ours, mounted through the same table. */
  readonly procedures?: (parts: { db: Database; keyed: Keyed }) => readonly Mounted[];
  /** The model; default: what the configuration names. */
  readonly provider?: Provider;
  /** Credits in micros that tenants are given once, at the first start. */
  readonly seedCredits?: Readonly<Record<string, number>>;
  /** Opens the database; default: the pool as it is. For whoever must see or break what passes between. */
  readonly openDatabase?: typeof openDatabase;
};

/** A server that listens. */
export type Serving = {
  readonly url: string;
  readonly app: App;
  readonly db: Database;
  readonly keyed: Keyed;
  readonly jobs: Jobs;
  /** Drains: no new work, jobs go back to the queue at once, running work gets `SHUTDOWN_GRACE_MS`, claims that are left are released; then everything closes. */
  stop(): Promise<void>;
};

/** Builds the app over one database, listens and starts the loops. Rejects when the port is taken. */
export async function serve(options: ServeOptions): Promise<Serving> {
  const { config, log } = options;
  const db = (options.openDatabase ?? openDatabase)({
    url: options.databaseUrl,
    max: config.dbPoolMax,
    prepare: config.dbPrepare,
    queryTimeoutMs: config.dbQueryTimeoutMs,
  });
  const metrics = createMetrics();
  const keyed = createKeyed(db, config.idempotency, {
    takenOver() {
      metrics.takenOver();
      log.info('a key was taken over');
    },
    fenced() {
      metrics.fenced();
      log.warn('a late owner was fenced off');
    },
    error: (message, error) => log.warn(message, errorFields(error)),
  });
  // Cursors are bound to their list by a keyed digest; without a secret of ours the digest still binds, and the tenant
  // comes from the token in any case.
  const pager = createPager(options.auth.secret ?? options.auth.jwksUrl ?? '');
  if (options.seedCredits !== undefined) await seedCredits(db, options.seedCredits);
  const provider = metrics.counted(options.provider ?? providerOf(config));
  const { timeoutMs, priceMicrosPerToken } = config.llm;
  const jobs = startJobs({
    db,
    listenUrl: config.dbPrepare ? options.databaseUrl : undefined,
    provider,
    pager,
    log,
    settings: { ...config.jobs, timeoutMs, priceMicrosPerToken, sweepMs: config.idempotency.sweepMs },
  });
  const loop = watchLoop();
  // Half of what a query may wait before it is 503 anyway; a loop that is two seconds late answers nobody in time.
  const pressureLimits = { poolMs: config.dbQueryTimeoutMs / 2, loopMs: 2_000 };
  const app = createApp({
    procedures: [
      ...orderProcedures(db, pager),
      ...docProcedures(db, pager),
      ...rewriteProcedures({ db, provider, timeoutMs, priceMicrosPerToken }),
      ...jobs.procedures,
      ...creditProcedures(db, pager),
      ...keyProcedures(keyed),
      ...(options.procedures?.({ db, keyed }) ?? []),
    ],
    open: [...healthRoutes(db, () => app.isDraining()), ...referenceRoutes(contract), metrics.route],
    authenticate: createAuthenticate(options.auth),
    db,
    keyed,
    spend: (tenant) => takeToken(db, config.rateLimit, tenant),
    pressure: () => pressureOf({ poolMs: db.stats().longestWaitMs, loopMs: loop.lateMs() }, pressureLimits),
    log,
    limits: config,
    onAnswer: metrics.onAnswer,
  });
  metrics.watch({
    db,
    parked: keyed.waitingRoom.count,
    owned: keyed.leases.count,
    openStreams: app.openStreams,
  });
  const server = createHttpServer((req, res, expectsContinue) => app.handle(req, res, expectsContinue), {
    requestTimeoutMs: config.requestTimeoutMs,
    ...defaultLimits,
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(config.port, config.host, resolve);
  }).catch(async (error: unknown) => {
    await jobs.stop();
    await keyed.leases.stop();
    await db.close(0);
    throw error;
  });
  const { port } = server.address() as AddressInfo;
  const host = config.host.includes(':') ? `[${config.host}]` : config.host;

  const loops: Loop[] = [
    startLoop(
      async () => {
        const counts = await sweepOnce(db, config.idempotency);
        metrics.swept(counts);
        return { more: counts.expired + counts.deleted > 0 };
      },
      config.idempotency.sweepMs,
      (error) => log.warn('sweeping keys failed', errorFields(error)),
    ),
    startLoop(
      async () => ({ more: (await releaseExpiredOnce(db)).released > 0 }),
      config.idempotency.sweepMs,
      (error) => log.warn('releasing holds of dead owners failed', errorFields(error)),
    ),
  ];

  let stopped: Promise<void> | undefined;
  const stop = async () => {
    app.drain();
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeIdleConnections();
    const handedBack = jobs.stop();
    await keyed.waitingRoom.stop();
    await within(config.shutdownGraceMs, app.idle());
    // Work that is aborted ends in this error, unless it has a better one.
    const stopping = problem('unavailable', { retryAfterMs: 1_000, message: 'The server is stopping: send it again.' });
    app.abort(stopping);
    await keyed.leases.releaseAll(stopping).catch((error: unknown) => {
      log.warn('claims could not be released; their leases run out', errorFields(error));
    });
    // What was aborted answers at once; nothing is waited for longer than this. Milliseconds.
    await within(500, app.idle());
    server.closeAllConnections();
    await closed;
    await Promise.all([handedBack, ...loops.map((loop) => loop.stop())]);
    await keyed.leases.stop();
    loop.stop();
    await db.close(1_000);
  };
  return { url: `http://${host}:${port}`, app, db, keyed, jobs, stop: () => (stopped ??= stop()) };
}

function providerOf({ llm }: Config): Provider {
  return llm.baseUrl === undefined
    ? createSimulatedProvider({ latencyMs: llm.simLatencyMs, tokens: llm.simTokens })
    : createOpenAiProvider({ baseUrl: llm.baseUrl, apiKey: llm.apiKey, model: llm.model });
}

/** Resolves when the promise does or the time is up, whichever is first. */
async function within(ms: number, promise: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeUp = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([promise, timeUp]);
  clearTimeout(timer);
}
