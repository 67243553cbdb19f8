/** The whole configuration, parsed and refused once at the start. Milliseconds and bytes are in the names. */
export type Config = {
  readonly host: string;
  readonly port: number;
  /** Absent: the embedded Postgres in `dataDir`. */
  readonly databaseUrl: string | undefined;
  readonly dataDir: string;
  readonly dbPoolMax: number;
  readonly dbPrepare: boolean;
  readonly dbQueryTimeoutMs: number;
  readonly auth: {
    readonly secret: string | undefined;
    readonly jwksUrl: string | undefined;
    readonly issuer: string | undefined;
    readonly audience: string | undefined;
  };
  readonly idempotency: {
    readonly ttlMs: number;
    readonly tombstoneMs: number;
    readonly leaseMs: number;
    readonly sweepMs: number;
  };
  readonly llm: {
    readonly baseUrl: string | undefined;
    readonly apiKey: string | undefined;
    readonly model: string;
    readonly timeoutMs: number;
    readonly priceMicrosPerToken: number;
    readonly simLatencyMs: number;
    readonly simTokens: number;
  };
  readonly jobs: {
    readonly workers: number;
    readonly leaseMs: number;
    readonly maxAttempts: number;
    readonly retentionMs: number;
  };
  readonly rateLimit: { readonly perMinute: number; readonly burst: number };
  readonly maxBodyBytes: number;
  readonly requestTimeoutMs: number;
  readonly shutdownGraceMs: number;
  readonly corsOrigins: readonly string[];
  readonly logLevel: LogLevel;
};

const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
/** How much is logged; `info` has one line per request. */
export type LogLevel = (typeof logLevels)[number];

/** A variable the server does not start with; `message` says what it got and what it takes. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

type Environment = Readonly<Record<string, string | undefined>>;

const daySeconds = 86_400;
/** Longest span a timer or an interval of Postgres is asked to hold: ten years in seconds. */
const maxSeconds = 3650 * daySeconds;

/** Reads the configuration from an environment. An empty variable counts as absent. Throws ConfigError. */
export function parseConfig(env: Environment): Config {
  const read = (name: string): string | undefined => {
    const value = env[name]?.trim();
    return value === '' ? undefined : value;
  };
  const refuse = (name: string, takes: string): never => {
    // A secret's value is never repeated.
    const got = /SECRET|KEY|DATABASE_URL/.test(name) ? 'a value that does not fit' : JSON.stringify(read(name));
    throw new ConfigError(`${name}: got ${got}; it takes ${takes}.`);
  };
  const integer = (name: string, fallback: number, min: number, max: number): number => {
    const value = read(name);
    if (value === undefined) return fallback;
    const parsed = /^[0-9]{1,15}$/.test(value) ? Number(value) : Number.NaN;
    return parsed >= min && parsed <= max ? parsed : refuse(name, `a whole number from ${min} to ${max}`);
  };
  const url = (name: string, protocols: readonly string[]): string | undefined => {
    const value = read(name);
    if (value === undefined) return undefined;
    const readable = firstHost(value);
    return URL.canParse(readable) && protocols.includes(new URL(readable).protocol)
      ? value
      : refuse(name, `a URL that starts with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}`);
  };
  const oneOf = <const T extends string>(name: string, fallback: T, values: readonly T[]): T => {
    const value = read(name) ?? fallback;
    return values.find((candidate) => candidate === value) ?? refuse(name, `one of ${values.join(', ')}`);
  };

  const secret = read('AUTH_SECRET');
  // RFC 7518 §3.2: an HS256 key is at least as long as the hash.
  if (secret !== undefined && Buffer.byteLength(secret) < 32) refuse('AUTH_SECRET', 'at least 32 bytes');
  const jwksUrl = url('AUTH_JWKS_URL', ['http:', 'https:']);
  if (secret !== undefined && jwksUrl !== undefined) {
    throw new ConfigError('AUTH_SECRET and AUTH_JWKS_URL are both set; take one of them.');
  }

  return {
    host: read('HOST') ?? '127.0.0.1',
    port: integer('PORT', 3000, 0, 65_535),
    databaseUrl: url('DATABASE_URL', ['postgres:', 'postgresql:']),
    dataDir: read('DATA_DIR') ?? '.data',
    dbPoolMax: integer('DB_POOL_MAX', 10, 1, 1_000),
    dbPrepare: oneOf('DB_PREPARE', 'true', ['true', 'false']) === 'true',
    dbQueryTimeoutMs: integer('DB_QUERY_TIMEOUT_MS', 5_000, 10, 600_000),
    auth: { secret, jwksUrl, issuer: read('AUTH_ISSUER'), audience: read('AUTH_AUDIENCE') },
    idempotency: {
      ttlMs: integer('IDEMPOTENCY_TTL_S', daySeconds, 1, maxSeconds) * 1_000,
      tombstoneMs: integer('IDEMPOTENCY_TOMBSTONE_S', 30 * daySeconds, 0, maxSeconds) * 1_000,
      leaseMs: integer('IDEMPOTENCY_LEASE_MS', 15_000, 1, 3_600_000),
      sweepMs: integer('IDEMPOTENCY_SWEEP_MS', 60_000, 10, 86_400_000),
    },
    llm: {
      baseUrl: url('LLM_BASE_URL', ['http:', 'https:']),
      apiKey: read('LLM_API_KEY'),
      model: read('LLM_MODEL') ?? 'default',
      timeoutMs: integer('LLM_TIMEOUT_MS', 120_000, 10, 3_600_000),
      priceMicrosPerToken: integer('LLM_PRICE_MICROS_PER_TOKEN', 10, 0, 1_000_000),
      simLatencyMs: integer('LLM_SIM_LATENCY_MS', 1_000, 0, 3_600_000),
      simTokens: integer('LLM_SIM_TOKENS', 64, 1, 100_000),
    },
    jobs: {
      workers: integer('WORKERS', 4, 0, 1_000),
      leaseMs: integer('JOB_LEASE_MS', 15_000, 10, 3_600_000),
      maxAttempts: integer('JOB_MAX_ATTEMPTS', 5, 1, 100),
      retentionMs: integer('JOB_RETENTION_S', 30 * daySeconds, 1, maxSeconds) * 1_000,
    },
    rateLimit: {
      perMinute: integer('RATE_LIMIT_RPM', 600, 1, 1_000_000),
      burst: integer('RATE_LIMIT_BURST', 100, 1, 1_000_000),
    },
    maxBodyBytes: integer('MAX_BODY_BYTES', 1_048_576, 1, 1_073_741_824),
    requestTimeoutMs: integer('REQUEST_TIMEOUT_MS', 30_000, 10, 3_600_000),
    shutdownGraceMs: integer('SHUTDOWN_GRACE_MS', 10_000, 0, 3_600_000),
    corsOrigins: parseOrigins(read('CORS_ORIGINS'), refuse),
    logLevel: oneOf('LOG_LEVEL', 'info', logLevels),
  };
}

/** A URL of Postgres may name several hosts, `host1:5432,host2:5433`, tried in turn; the web's own names one. */
function firstHost(url: string): string {
  return url.replace(/,[^/?#@]*(?=[/?#]|$)/, '');
}

function parseOrigins(value: string | undefined, refuse: (name: string, takes: string) => never): readonly string[] {
  if (value === undefined) return [];
  const origins = value.split(',').map((origin) => origin.trim());
  for (const origin of origins) {
    const isOrigin = origin === '*' || (URL.canParse(origin) && new URL(origin).origin === origin);
    if (!isOrigin) refuse('CORS_ORIGINS', 'origins such as https://app.example.com separated by commas, or *');
  }
  return origins;
}
