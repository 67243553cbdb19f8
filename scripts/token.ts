import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { readSecret } from '../src/auth/development-secret.ts';
import { isTenant } from '../src/auth/principal.ts';
import { signToken } from '../src/auth/tokens.ts';
import { parseConfig } from '../src/config.ts';

const usage = `Usage: npm run -s token -- TENANT [SUB] [--scope "a b"] [--ttl SECONDS]

Prints a bearer token for AUTH_SECRET, or for the development secret that npm start made, and nothing else.
  TENANT           1 to 64 of A-Z a-z 0-9 . _ -
  SUB              who; default: dev
  --scope "a b"    scopes, separated by blanks
  --ttl SECONDS    how long it is valid; default: 86400
`;

/** Longest validity that is signed: ten years. Seconds. */
const maxTtlSeconds = 315_360_000;

function fail(message: string): never {
  process.stderr.write(`${message}\n\n${usage}`);
  process.exit(2);
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: { scope: { type: 'string' }, ttl: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
    });
  } catch (error) {
    return fail((error as Error).message);
  }
}

const { values, positionals } = readArguments();
if (values.help) {
  process.stdout.write(usage);
  process.exit(0);
}
const [tenant, sub = 'dev', ...rest] = positionals;
if (!isTenant(tenant)) fail('TENANT: give a tenant of 1 to 64 letters, digits, dots, dashes or underscores.');
if (rest.length > 0) fail(`Not understood: ${rest.join(' ')}`);
const ttl = values.ttl ?? '86400';
if (!/^[1-9][0-9]{0,8}$/.test(ttl) || Number(ttl) > maxTtlSeconds) fail(`--ttl: takes 1 to ${maxTtlSeconds} seconds.`);

const config = parseConfig(process.env);
if (config.auth.jwksUrl !== undefined) fail('With AUTH_JWKS_URL tokens are signed elsewhere.');
const secret = config.auth.secret ?? (await readSecret(join(resolve(config.dataDir), 'auth-secret')));
if (secret === undefined) fail('There is no secret yet: run npm start once, or set AUTH_SECRET.');
const claims = { tenant, sub, ...(values.scope === undefined ? {} : { scope: values.scope }) };
process.stdout.write(`${await signToken(secret, claims, Number(ttl), config.auth)}\n`);
