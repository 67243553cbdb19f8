import { type AuthSettings, createAuthenticate } from './auth/tokens.ts';
import type { Config } from './config.ts';
import { seedCredits } from './credits/books.ts';
import { releaseExpiredOnce } from './credits/holds.ts';
import type { openDatabase } from './db/pool.ts';
import type { Mounted } from './handler.ts';
import { type Core, type Hosted, host, openCore } from './host.ts';
import { createOpenAiProvider } from './llm/openai.ts';
import type { Provider } from './llm/provider.ts';
import { createSimulatedProvider } from './llm/simulated.ts';
import { errorFields, type Log } from './log.ts';
import { startLoop } from './loop.ts';
import { createMetrics } from './metrics.ts';
import { errorsRoute, healthRoutes } from './open-routes.ts';
import { openApiRoute } from './openapi-route.ts';
import { type DevelopmentToken, pageRoutes } from './page/routes.ts';
import { contract } from './protocol/contract.ts';
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
  readonly procedures?: (core: Core) => readonly Mounted[];
  /** The model; default: what the configuration names. */
  readonly provider?: Provider;
  /** Credits in micros that tenants are given once, at the first start. */
  readonly seedCredits?: Readonly<Record<string, number>>;
  /** Makes the tokens that the page at `/` offers on this machine; absent: none are offered. */
  readonly developmentTokens?: () => Promise<readonly DevelopmentToken[]>;
  /** Opens the database; default: the pool as it is. For whoever must see or break what passes between. */
  readonly openDatabase?: typeof openDatabase;
};

/** Our server, listening. Jobs that run when it stops go back to the queue at once. */
export type Serving = Hosted & { readonly jobs: Jobs };

/** Our routes over one database: opens it, listens and starts the loops. Rejects when the port is taken. */
export async function serve(options: ServeOptions): Promise<Serving> {
  const { config, databaseUrl, log } = options;
  const metrics = createMetrics();
  const core = openCore({
    settings: config,
    databaseUrl,
    log,
    events: metrics,
    ...(options.openDatabase && { openDatabase: options.openDatabase }),
  });
  const { db, keyed } = core;
  // Cursors are bound to their list by a keyed digest; without a secret of ours the digest still binds, and the tenant
  // comes from the token in any case.
  const pager = createPager(options.auth.secret ?? options.auth.jwksUrl ?? '');
  if (options.seedCredits !== undefined) await seedCredits(db, options.seedCredits);
  const provider = metrics.counted(options.provider ?? providerOf(config));
  const { timeoutMs, priceMicrosPerToken } = config.llm;
  const { sweepMs } = config.idempotency;
  const jobs = startJobs({
    db,
    listenUrl: config.dbPrepare ? databaseUrl : undefined,
    provider,
    pager,
    log,
    settings: { ...config.jobs, timeoutMs, priceMicrosPerToken, sweepMs },
  });
  const releasing = startLoop(
    async () => ({ more: (await releaseExpiredOnce(db)).released > 0 }),
    sweepMs,
    (error) => log.warn('releasing holds of dead owners failed', errorFields(error)),
  );
  const hosted = await host(core, {
    settings: config,
    log,
    authenticate: createAuthenticate(options.auth),
    procedures: [
      ...orderProcedures(db, pager),
      ...docProcedures(db, pager),
      ...rewriteProcedures({ db, provider, timeoutMs, priceMicrosPerToken }),
      ...jobs.procedures,
      ...creditProcedures(db, pager),
      ...keyProcedures(keyed),
      ...(options.procedures?.(core) ?? []),
    ],
    open: (isDraining) => [
      ...healthRoutes(db, isDraining),
      errorsRoute(),
      openApiRoute(contract),
      metrics.route,
      ...pageRoutes(options.developmentTokens),
    ],
    onAnswer: metrics.onAnswer,
    onSwept: metrics.swept,
    background: [jobs, releasing],
  });
  metrics.watch({
    db,
    parked: keyed.waitingRoom.count,
    owned: keyed.leases.count,
    openStreams: hosted.app.openStreams,
  });
  return { ...hosted, jobs };
}

function providerOf({ llm }: Config): Provider {
  return llm.baseUrl === undefined
    ? createSimulatedProvider({ latencyMs: llm.simLatencyMs, tokens: llm.simTokens })
    : createOpenAiProvider({ baseUrl: llm.baseUrl, apiKey: llm.apiKey, model: llm.model });
}
