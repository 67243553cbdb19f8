/** One variable of the environment, told to people. */
type Variable = {
  readonly name: string;
  /** As it would be set; undefined: absent unless it is set. */
  readonly byDefault?: string;
  readonly about: string;
};

/** All that `parseConfig` reads, in the order in which a reader meets it. A test holds names and defaults to the parser. */
export const variables: readonly Variable[] = [
  { name: 'HOST', byDefault: '127.0.0.1', about: 'the address to listen on' },
  { name: 'PORT', byDefault: '3000', about: '0 takes a free one; the first line of output says which' },
  {
    name: 'DATABASE_URL',
    about: 'a PostgreSQL from 15 on, several hosts if you like; none: the embedded one. Migrations run at the start',
  },
  { name: 'DATA_DIR', byDefault: '.data', about: 'where the embedded database and the development secret are kept' },
  { name: 'DB_POOL_MAX', byDefault: '10', about: 'connections of this process' },
  { name: 'DB_PREPARE', byDefault: 'true', about: 'false behind PgBouncer in transaction mode' },
  { name: 'DB_QUERY_TIMEOUT_MS', byDefault: '5000', about: 'a query, or a wait for a connection, beyond it is 503' },
  {
    name: 'AUTH_SECRET',
    about: 'verifies tokens (HS256), 32 bytes or more; needed with DATABASE_URL or a public HOST',
  },
  { name: 'AUTH_JWKS_URL', about: 'verifies tokens by the key set there, instead of AUTH_SECRET' },
  { name: 'AUTH_ISSUER', about: 'the `iss` that tokens must have' },
  { name: 'AUTH_AUDIENCE', about: 'the `aud` that tokens must have' },
  { name: 'IDEMPOTENCY_TTL_S', byDefault: '86400', about: 'for so long a key’s answer is replayed' },
  {
    name: 'IDEMPOTENCY_TOMBSTONE_S',
    byDefault: '2592000',
    about: 'for so long after that the key is refused, not run again',
  },
  {
    name: 'IDEMPOTENCY_LEASE_MS',
    byDefault: '15000',
    about: 'a dead owner’s key is taken over after so long; the living renew',
  },
  { name: 'IDEMPOTENCY_SWEEP_MS', byDefault: '60000', about: 'between two rounds of the sweep' },
  { name: 'LLM_BASE_URL', about: 'an OpenAI-compatible server; none: the simulated model' },
  { name: 'LLM_API_KEY', about: 'what the model’s server is shown' },
  { name: 'LLM_MODEL', byDefault: 'default', about: 'the model asked for' },
  { name: 'LLM_TIMEOUT_MS', byDefault: '120000', about: 'the whole of one model call' },
  { name: 'LLM_PRICE_MICROS_PER_TOKEN', byDefault: '10', about: 'what a tenant pays, in millionths' },
  { name: 'LLM_SIM_LATENCY_MS', byDefault: '1000', about: 'the simulated model: from the call to the last token' },
  { name: 'LLM_SIM_TOKENS', byDefault: '64', about: 'the simulated model: tokens an answer' },
  { name: 'WORKERS', byDefault: '4', about: 'jobs at a time in this process; 0: none' },
  { name: 'JOB_LEASE_MS', byDefault: '15000', about: 'a dead worker’s job is taken over after so long' },
  { name: 'JOB_MAX_ATTEMPTS', byDefault: '5', about: 'then a job has failed' },
  { name: 'JOB_RETENTION_S', byDefault: '2592000', about: 'for so long an ended job is kept' },
  {
    name: 'RATE_LIMIT_RPM',
    byDefault: '600',
    about: 'requests a minute and tenant on routes that spend, over all processes',
  },
  { name: 'RATE_LIMIT_BURST', byDefault: '100', about: 'of these at once' },
  { name: 'MAX_BODY_BYTES', byDefault: '1048576', about: 'a larger body is 413' },
  { name: 'REQUEST_TIMEOUT_MS', byDefault: '30000', about: 'to receive head and body' },
  {
    name: 'SHUTDOWN_GRACE_MS',
    byDefault: '10000',
    about: 'running requests may take so long once the server is told to stop',
  },
  { name: 'CORS_ORIGINS', about: 'origins of browsers that may call, separated by commas, or *' },
  { name: 'LOG_LEVEL', byDefault: 'info', about: 'debug, info (a line a request), warn, error or silent' },
];

/** `docs/configuration.md`. */
export function configurationMarkdown(): string {
  const rows = variables.map(
    ({ name, byDefault, about }) =>
      `| \`${name}\` | ${byDefault === undefined ? '–' : `\`${byDefault}\``} | ${about} |`,
  );
  return `<!-- made by npm run docs -->

# Configuration

Variables of the environment, read once at the start; one that does not fit refuses it and says what it takes. \`npm run doctor\` looks at them
together with the database; [operations](operations.md) says how to choose.

| variable | default | what it is |
|---|---|---|
${rows.join('\n')}
`;
}

/** What \`npm start -- --help\` prints. */
export function configurationHelp(): string {
  const width = Math.max(...variables.map(({ name }) => name.length));
  const rows = variables.map(
    ({ name, byDefault, about }) =>
      `  ${name.padEnd(width)}  ${about}${byDefault === undefined ? '' : ` (${byDefault})`}\n`,
  );
  return `Usage: npm start

Starts the server. It is set by variables of the environment:

${rows.join('')}`;
}
