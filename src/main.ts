import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { developmentSecret } from './auth/development-secret.ts';
import { type AuthSettings, signToken } from './auth/tokens.ts';
import { type Config, ConfigError, parseConfig } from './config.ts';
import { firstCredits } from './credits/books.ts';
import { EmbeddedPostgresError, startEmbedded } from './db/embedded.ts';
import { migrate, UnsupportedServerError } from './db/migrate.ts';
import { INVALID_CATALOG_NAME, INVALID_PASSWORD, sqlstateOf } from './db/sqlstate.ts';
import { DatabaseUnavailable } from './db/unavailable.ts';
import { createLog } from './log.ts';
import type { DevelopmentToken } from './page/routes.ts';
import { configurationHelp } from './reference/configuration.ts';
import { serve } from './serve.ts';

/** Development tokens of the first screen are valid for a day. Seconds. */
const tokenTtlSeconds = 86_400;

/** Two signals within this are one Ctrl-C. Milliseconds. */
const twinMs = 1_000;

const isLoopback = (host: string) => host === 'localhost' || host === '::1' || /^127(\.[0-9]{1,3}){3}$/.test(host);

/** Which secret or key set verifies tokens. Throws ConfigError where a development secret would be open to others. */
async function authSettings(config: Config): Promise<AuthSettings & { isDevelopment: boolean }> {
  if (config.auth.secret !== undefined || config.auth.jwksUrl !== undefined) {
    return { ...config.auth, isDevelopment: false };
  }
  if (config.databaseUrl !== undefined) {
    throw new ConfigError(
      'AUTH_SECRET: got nothing; with DATABASE_URL set AUTH_SECRET (32 bytes or more) or AUTH_JWKS_URL.',
    );
  }
  if (!isLoopback(config.host)) {
    throw new ConfigError(
      `AUTH_SECRET: got nothing; HOST ${config.host} can be reached by others, so set AUTH_SECRET (32 bytes or more) or AUTH_JWKS_URL.`,
    );
  }
  return { ...config.auth, secret: await developmentSecret(resolve(config.dataDir)), isDevelopment: true };
}

/** Tokens of the two tenants that a first start knows, and of a colleague in the first. */
async function developmentTokens(auth: AuthSettings): Promise<readonly DevelopmentToken[]> {
  const who = [
    { tenant: 'acme', sub: 'alice' },
    { tenant: 'globex', sub: 'bob' },
    { tenant: 'acme', sub: 'carol' },
  ];
  const sign = (claims: { tenant: string; sub: string }) =>
    signToken(auth.secret as string, { ...claims, scope: 'credits:write' }, tokenTtlSeconds, auth);
  return await Promise.all(who.map(async (claims) => ({ ...claims, token: await sign(claims) })));
}

async function firstScreen(url: string, auth: AuthSettings): Promise<string> {
  const [acme, globex] = (await developmentTokens(auth)).map(({ token }) => token);
  const order = (body: string) =>
    `curl -i $URL/v1/orders -H "Authorization: Bearer $ACME" -H 'Content-Type: application/json' -H 'Idempotency-Key: k-1' -d '${body}'`;
  return `
The same to click through: ${url}/

Tokens for a day, one a tenant:

URL=${url}
ACME=${acme}
GLOBEX=${globex}

An order; the same again (replayed); another body under the same key (409):

${order('{"cents":3000,"item":"pro-plan"}')}
${order('{"cents":3000,"item":"pro-plan"}')}
${order('{"cents":9900,"item":"pro-plan"}')}

Ctrl-C stops the server.
`;
}

/**
 * Resolves at the first SIGINT or SIGTERM, whenever it comes: draining begins. A later one ends the process without waiting,
 * but not the twin of the first: a terminal's Ctrl-C reaches npm and this process, and npm hands it on.
 */
function firstSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let firstAtMs: number | undefined;
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        if (firstAtMs !== undefined && performance.now() - firstAtMs > twinMs) process.exit(130);
        firstAtMs ??= performance.now();
        resolve(signal);
      });
    }
  });
}

async function main(): Promise<void> {
  const config = parseConfig(process.env);
  const auth = await authSettings(config);
  const log = createLog(config.logLevel, (line) => process.stdout.write(line));

  const signalled = firstSignal();

  const embedded =
    config.databaseUrl === undefined
      ? await startEmbedded({
          dataDir: resolve(config.dataDir),
          onNotice: (sentence) => process.stderr.write(`${sentence}\n`),
        })
      : undefined;
  try {
    const databaseUrl = config.databaseUrl ?? (embedded as { url: string }).url;
    await migrate(databaseUrl);
    const serving = await serve({
      config,
      databaseUrl,
      auth,
      log,
      ...(embedded && { seedCredits: firstCredits }),
      ...(auth.isDevelopment && { developmentTokens: () => developmentTokens(auth) }),
    });
    process.stdout.write(`retry-safe listens on ${serving.url}\n`);
    if (auth.isDevelopment) process.stdout.write(await firstScreen(serving.url, auth));
    const reason = await Promise.race([signalled, ...(embedded ? [embedded.ended.then(() => 'database ended')] : [])]);
    log.info('stopping', { reason });
    await serving.stop();
    if (reason === 'database ended') throw new Error('the embedded Postgres ended; its log is in DATA_DIR');
  } finally {
    await embedded?.stop();
  }
}

if (wantsHelp()) {
  process.stdout.write(configurationHelp());
  process.exit(0);
}
try {
  await main();
  process.exit(0);
} catch (error) {
  process.stderr.write(`${startError(error)}\n`);
  process.exit(1);
}

function wantsHelp(): boolean {
  try {
    return parseArgs({ options: { help: { type: 'boolean', short: 'h' } } }).values.help === true;
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${configurationHelp()}`);
    process.exit(2);
  }
}

/** One clear sentence for what a newcomer meets; the stack for what nobody foresaw. */
function startError(error: unknown): string {
  if (error instanceof ConfigError || error instanceof EmbeddedPostgresError) return error.message;
  if (error instanceof UnsupportedServerError) return `DATABASE_URL: ${error.message}.`;
  if (error instanceof DatabaseUnavailable) {
    return `DATABASE_URL: ${error.message}${error.cause instanceof Error ? ` (${error.cause.message})` : ''}.`;
  }
  const sqlstate = sqlstateOf(error);
  if (sqlstate === INVALID_PASSWORD || sqlstate === INVALID_CATALOG_NAME) {
    return `DATABASE_URL: ${(error as Error).message}.`;
  }
  const { code, port } = error as { code?: string; port?: number };
  if (code === 'EADDRINUSE') return `PORT: ${port} is taken; stop what listens there or set PORT (0 takes a free one).`;
  if (code === 'EACCES' && port !== undefined) return `PORT: ${port} is not open to this user; set PORT above 1023.`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') return 'HOST: this address is not one of this machine.';
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
