import type { AddressInfo } from 'node:net';
import { type App, createApp, type OpenRoute } from './app.ts';
import type { Authenticate } from './auth/tokens.ts';
import type { Config } from './config.ts';
import { type Database, openDatabase } from './db/pool.ts';
import type { Mounted } from './handler.ts';
import { createHttpServer, defaultLimits } from './http/server.ts';
import { createKeyed, type Keyed } from './idempotency/keyed.ts';
import { type SweepCounts, sweepOnce } from './idempotency/sweep.ts';
import { pressureOf, watchLoop } from './limits/pressure.ts';
import { takeToken } from './limits/token-bucket.ts';
import { errorFields, type Log } from './log.ts';
import { startLoop } from './loop.ts';
import { problem } from './protocol/errors.ts';

/** The part of the configuration that is about no route in particular. */
export type HostSettings = Pick<
  Config,
  | 'host'
  | 'port'
  | 'dbPoolMax'
  | 'dbPrepare'
  | 'dbQueryTimeoutMs'
  | 'idempotency'
  | 'rateLimit'
  | 'maxBodyBytes'
  | 'requestTimeoutMs'
  | 'shutdownGraceMs'
  | 'corsOrigins'
>;

/** What is there before any route: the database and the protocol of the key. */
export type Core = { readonly db: Database; readonly keyed: Keyed };

/** What the core is made from; the database is migrated. */
export type CoreOptions = {
  readonly settings: HostSettings;
  readonly databaseUrl: string;
  readonly keySchema?: string;
  readonly log: Log;
  /** Events of keys worth counting; they are logged in any case. */
  readonly events?: { takenOver(): void; fenced(): void };
  /** Opens the database; default: the pool as it is. For whoever must see or break what passes between. */
  readonly openDatabase?: typeof openDatabase;
};

/** Opens the database and begins to renew leases. */
export function openCore({ settings, databaseUrl, keySchema, log, events, ...options }: CoreOptions): Core {
  const db = (options.openDatabase ?? openDatabase)({
    url: databaseUrl,
    max: settings.dbPoolMax,
    prepare: settings.dbPrepare,
    queryTimeoutMs: settings.dbQueryTimeoutMs,
    ...(keySchema === undefined ? {} : { keySchema }),
  });
  const keyed = createKeyed(db, settings.idempotency, {
    takenOver() {
      events?.takenOver();
      log.info('a key was taken over');
    },
    fenced() {
      events?.fenced();
      log.warn('a late owner was fenced off');
    },
    error: (message, error) => log.warn(message, errorFields(error)),
  });
  return { db, keyed };
}

/** Work beside the requests. */
export type Background = { stop(): Promise<void> };

/** What is served over a core. */
export type HostOptions = {
  readonly settings: HostSettings;
  readonly log: Log;
  readonly procedures: readonly Mounted[];
  /** Routes without token; they may ask whether the server is leaving. */
  readonly open: (isDraining: () => boolean) => readonly OpenRoute[];
  readonly authenticate: Authenticate;
  readonly onAnswer?: Parameters<typeof createApp>[0]['onAnswer'];
  readonly onSwept?: (counts: SweepCounts) => void;
  /** Told to stop as soon as draining begins; waited for at the end. */
  readonly background?: readonly Background[];
};

/** A server that listens. */
export type Hosted = Core & {
  readonly url: string;
  readonly app: App;
  /** Drains: no new work, running work gets `shutdownGraceMs`, claims that are left are released; then everything closes. */
  stop(): Promise<void>;
};

/** Listens, and sweeps keys. Rejects when the port is taken; then everything is closed again. */
export async function host(core: Core, options: HostOptions): Promise<Hosted> {
  const { db, keyed } = core;
  const { settings, log, onAnswer } = options;
  const loop = watchLoop();
  // Half of what a query may wait before it is 503 anyway; a loop that is two seconds late answers nobody in time.
  const pressureLimits = { poolMs: settings.dbQueryTimeoutMs / 2, loopMs: 2_000 };
  const app = createApp({
    procedures: options.procedures,
    open: options.open(() => app.isDraining()),
    authenticate: options.authenticate,
    db,
    keyed,
    spend: (tenant) => takeToken(db, settings.rateLimit, tenant),
    pressure: () => pressureOf({ poolMs: db.stats().longestWaitMs, loopMs: loop.lateMs() }, pressureLimits),
    log,
    limits: settings,
    ...(onAnswer && { onAnswer }),
  });
  const server = createHttpServer((req, res, expectsContinue) => app.handle(req, res, expectsContinue), {
    requestTimeoutMs: settings.requestTimeoutMs,
    ...defaultLimits,
  });
  const sweeping = startLoop(
    async () => {
      const counts = await sweepOnce(db, settings.idempotency);
      options.onSwept?.(counts);
      return { more: counts.expired + counts.deleted > 0 };
    },
    settings.idempotency.sweepMs,
    (error) => log.warn('sweeping keys failed', errorFields(error)),
  );
  const endBackground = () => Promise.all([sweeping, ...(options.background ?? [])].map((work) => work.stop()));

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(settings.port, settings.host, resolve);
  }).catch(async (error: unknown) => {
    await endBackground();
    await keyed.leases.stop();
    loop.stop();
    await db.close(0);
    throw error;
  });
  const { port } = server.address() as AddressInfo;
  const name = settings.host.includes(':') ? `[${settings.host}]` : settings.host;

  let stopped: Promise<void> | undefined;
  const stop = async () => {
    app.drain();
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeIdleConnections();
    const ended = endBackground();
    await keyed.waitingRoom.stop();
    await within(settings.shutdownGraceMs, app.idle());
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
    await ended;
    await keyed.leases.stop();
    loop.stop();
    await db.close(1_000);
  };
  return { ...core, url: `http://${name}:${port}`, app, stop: () => (stopped ??= stop()) };
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
