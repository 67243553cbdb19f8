import type { OpenRoute } from './app.ts';
import { type Authenticate, type AuthSettings, createAuthenticate } from './auth/tokens.ts';
import { ConfigError, parseConfig } from './config.ts';
import { defaultKeySchema, migrateKeys } from './db/migrate.ts';
import { openOrm } from './db/orm.ts';
import type { Orm } from './db/pool.ts';
import type { Mounted } from './handler.ts';
import { type Core, type Hosted, type HostSettings, host, openCore } from './host.ts';
import { createLog, type Log } from './log.ts';
import { errorsRoute, healthRoutes } from './open-routes.ts';

/** What procedures are made from: the pool, the protocol of the key, and drizzle for reads outside a transaction. */
export type ServerParts = Core & { readonly orm: Orm };

/** A server of your own procedures. */
export type ServerOptions = {
  /** Your database; your tables are there already. The tables of the key are made in a schema of their own. */
  readonly databaseUrl: string;
  /** How tokens are verified, or who the caller is by your own means. */
  readonly auth: AuthSettings | Authenticate;
  readonly procedures: (parts: ServerParts) => readonly Mounted[];
  /** What differs from the defaults; `parseConfig(process.env)` takes the same variables as the reference server. */
  readonly settings?: Partial<HostSettings>;
  readonly keySchema?: string;
  /** Routes without token, beside `/healthz`, `/readyz` and `/docs/errors`. */
  readonly open?: readonly OpenRoute[];
  /** Default: warnings and errors as lines of JSON on stderr. */
  readonly log?: Log;
};

/** Makes the tables of the key where they are missing, listens and begins to work. Rejects when the port is taken, with a ConfigError without a secret. */
export async function startServer(options: ServerOptions): Promise<Hosted> {
  const { databaseUrl, auth, keySchema = defaultKeySchema } = options;
  const settings: HostSettings = { ...parseConfig({}), ...options.settings };
  const log = options.log ?? createLog('warn', (line) => process.stderr.write(line));
  const authenticate = typeof auth === 'function' ? auth : createAuthenticate(checkAuth(auth));
  await migrateKeys(databaseUrl, keySchema);
  const core = openCore({ settings, databaseUrl, keySchema, log });
  return await host(core, {
    settings,
    log,
    procedures: options.procedures({ ...core, orm: openOrm(core.db) }),
    open: (isDraining) => [...healthRoutes(core.db, isDraining), errorsRoute(), ...(options.open ?? [])],
    authenticate,
  });
}

/** A server that nobody can verify tokens for would take any, or none. */
function checkAuth(auth: AuthSettings): AuthSettings {
  const isWeak = auth.secret !== undefined && Buffer.byteLength(auth.secret) < 32;
  if (isWeak || (auth.secret === undefined) === (auth.jwksUrl === undefined)) {
    throw new ConfigError('auth takes a secret of at least 32 bytes, or a jwksUrl.');
  }
  return auth;
}
