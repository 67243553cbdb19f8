import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigError, parseConfig } from '../src/config.ts';
import { variables } from '../src/reference/configuration.ts';

test('no variable is needed: the defaults are those of the contract', () => {
  const config = parseConfig({});
  assert.deepEqual(
    [config.host, config.port, config.databaseUrl, config.dataDir, config.dbPoolMax, config.dbPrepare],
    ['127.0.0.1', 3_000, undefined, '.data', 10, true],
  );
  assert.deepEqual(config.auth, { secret: undefined, jwksUrl: undefined, issuer: undefined, audience: undefined });
  assert.deepEqual(config.idempotency, {
    ttlMs: 86_400_000,
    tombstoneMs: 2_592_000_000,
    leaseMs: 15_000,
    sweepMs: 60_000,
  });
  assert.deepEqual(config.rateLimit, { perMinute: 600, burst: 100 });
  assert.deepEqual(
    [config.maxBodyBytes, config.requestTimeoutMs, config.shutdownGraceMs, config.dbQueryTimeoutMs],
    [1_048_576, 30_000, 10_000, 5_000],
  );
  assert.deepEqual([config.corsOrigins, config.logLevel], [[], 'info']);
  assert.deepEqual(
    [config.llm.baseUrl, config.llm.priceMicrosPerToken, config.llm.simLatencyMs],
    [undefined, 10, 1_000],
  );
  assert.deepEqual(
    [config.llm.simTokens, config.jobs.workers, config.jobs.leaseMs, config.jobs.maxAttempts],
    [64, 4, 15_000, 5],
  );
});

test('an empty variable counts as absent, and blanks around a value do not count', () => {
  const config = parseConfig({
    PORT: '',
    DATABASE_URL: '  ',
    HOST: ' 0.0.0.0 ',
    DB_POOL_MAX: ' 7 ',
    DB_PREPARE: 'false',
  });
  assert.deepEqual(
    [config.port, config.databaseUrl, config.host, config.dbPoolMax, config.dbPrepare],
    [3_000, undefined, '0.0.0.0', 7, false],
  );
});

test('a value that does not fit is refused by name, with what it got and what it takes', () => {
  const refused: [name: string, value: string][] = [
    ['PORT', '-1'],
    ['PORT', '65536'],
    ['PORT', '3000x'],
    ['PORT', '0x10'],
    ['PORT', '1e3'],
    ['PORT', '3.5'],
    ['DB_POOL_MAX', '0'],
    ['DB_PREPARE', 'yes'],
    ['DB_QUERY_TIMEOUT_MS', '0'],
    ['IDEMPOTENCY_LEASE_MS', '0'],
    ['IDEMPOTENCY_LEASE_MS', '-5'],
    ['IDEMPOTENCY_TTL_S', '0'],
    ['IDEMPOTENCY_TTL_S', '-1'],
    ['IDEMPOTENCY_TTL_S', '99999999999999'],
    ['IDEMPOTENCY_TOMBSTONE_S', '-1'],
    ['IDEMPOTENCY_SWEEP_MS', '0'],
    ['MAX_BODY_BYTES', 'many'],
    ['REQUEST_TIMEOUT_MS', '0'],
    ['RATE_LIMIT_RPM', '0'],
    ['LLM_BASE_URL', 'ftp://example.com'],
    ['LLM_BASE_URL', 'localhost'],
    ['AUTH_JWKS_URL', 'file:///etc/passwd'],
    ['CORS_ORIGINS', 'example.com'],
    ['CORS_ORIGINS', 'https://a.example/path'],
    ['LOG_LEVEL', 'verbose'],
  ];
  for (const [name, value] of refused) {
    assert.throws(
      () => parseConfig({ [name]: value }),
      (error) => {
        assert.ok(error instanceof ConfigError, name);
        assert.match(error.message, new RegExp(`^${name}: got .*it takes .*\\.$`), name);
        assert.ok(error.message.includes(JSON.stringify(value)), error.message);
        return true;
      },
    );
  }
  assert.equal(parseConfig({ IDEMPOTENCY_TOMBSTONE_S: '0' }).idempotency.tombstoneMs, 0);
});

test('a secret that does not fit is refused without being repeated', () => {
  const cases: Record<string, string> = {
    AUTH_SECRET: 'short-secret',
    DATABASE_URL: 'mysql://user:hunter2-secret@db',
  };
  for (const [name, value] of Object.entries(cases)) {
    assert.throws(
      () => parseConfig({ [name]: value }),
      (error) =>
        error instanceof ConfigError && error.message.startsWith(name) && !/secret$|hunter2|short/.test(error.message),
    );
  }
});

test('a secret and a key set at once are refused: which one verifies must not be a guess', () => {
  const both = { AUTH_SECRET: 'x'.repeat(32), AUTH_JWKS_URL: 'https://issuer.example/jwks.json' };
  assert.throws(() => parseConfig(both), { name: 'ConfigError', message: /AUTH_SECRET.*AUTH_JWKS_URL/ });
});

test('origins are a list, or any', () => {
  const origins = parseConfig({ CORS_ORIGINS: 'https://a.example, http://localhost:5173' }).corsOrigins;
  assert.deepEqual(origins, ['https://a.example', 'http://localhost:5173']);
  assert.deepEqual(parseConfig({ CORS_ORIGINS: '*' }).corsOrigins, ['*']);
});

test('the reference of the configuration names each variable that is read, with the default it has', () => {
  const read = new Set<string>();
  const env = new Proxy({} as Record<string, string>, {
    get(_target, name) {
      read.add(String(name));
      return undefined;
    },
  });
  const byDefault = parseConfig(env);
  assert.deepEqual(variables.map(({ name }) => name).sort(), [...read].sort());
  for (const variable of variables) {
    if (variable.byDefault === undefined) continue;
    assert.deepEqual(parseConfig({ [variable.name]: variable.byDefault }), byDefault, variable.name);
  }
  // A default that is told but not had would show: another value changes the configuration.
  assert.notDeepEqual(parseConfig({ PORT: '3001' }), byDefault);
});
