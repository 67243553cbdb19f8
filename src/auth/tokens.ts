import { createHash } from 'node:crypto';
import { createRemoteJWKSet, type JWTPayload, type JWTVerifyOptions, jwtVerify, SignJWT } from 'jose';
import { problem } from '../protocol/errors.ts';
import { type Principal, principalOf } from './principal.ts';

/** How tokens are verified: one of `secret` (HS256) and `jwksUrl` (RS256, ES256, EdDSA). */
export type AuthSettings = {
  readonly secret?: string | undefined;
  readonly jwksUrl?: string | undefined;
  readonly issuer?: string | undefined;
  readonly audience?: string | undefined;
};

/** The principal of an `Authorization` header, given as its raw lines. Throws `unauthenticated`; `unavailable` when the key set is away. */
export type Authenticate = (lines: readonly string[] | undefined) => Promise<Principal>;

/** Verified tokens remembered, so that a signature is checked once and not per request. */
const maxRemembered = 2_000;
/** A key that was taken out of the key set must stop working soon: nothing is remembered longer. Milliseconds. */
const rememberMs = 30_000;
/** Clock difference with the issuer that is forgiven. Seconds. */
const clockToleranceSeconds = 5;
/** Longest token that is looked at; the head limit of the server is larger. Characters. */
const maxTokenLength = 8_192;

type Remembered = { readonly principal: Principal; readonly untilMs: number };

/** A verifier of bearer tokens. Time comes in as `nowMs`. */
export function createAuthenticate(settings: AuthSettings, nowMs: () => number = Date.now): Authenticate {
  const verify = createVerify(settings, nowMs);
  const remembered = new Map<string, Remembered>();

  return async (lines) => {
    const token = bearerToken(lines);
    if (token === undefined) throw problem('unauthenticated', { headers: { 'WWW-Authenticate': 'Bearer' } });
    // Looked up by digest, so that how long the look-up takes says nothing about the tokens that are remembered.
    const digest = createHash('sha256').update(token).digest('base64');
    const known = remembered.get(digest);
    if (known !== undefined && nowMs() < known.untilMs) return known.principal;
    remembered.delete(digest);

    const claims = await verify(token);
    const principal = principalOf(claims);
    if (principal === undefined) throw unauthenticated();
    // A map yields its oldest entry first.
    if (remembered.size >= maxRemembered) remembered.delete(remembered.keys().next().value as string);
    const untilMs = Math.min((claims.exp ?? 0) * 1_000, nowMs() + rememberMs);
    remembered.set(digest, { principal, untilMs });
    return principal;
  };
}

/** RFC 6750 §2.1; two Authorization lines are none. */
function bearerToken(lines: readonly string[] | undefined): string | undefined {
  if (lines?.length !== 1) return undefined;
  const match = /^bearer +([A-Za-z0-9._~+/-]+=*)$/i.exec((lines[0] as string).trim());
  const token = match?.[1];
  return token !== undefined && token.length <= maxTokenLength ? token : undefined;
}

function unauthenticated() {
  return problem('unauthenticated', { headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' } });
}

function createVerify(settings: AuthSettings, nowMs: () => number): (token: string) => Promise<JWTPayload> {
  const options = (algorithms: string[]): JWTVerifyOptions => ({
    algorithms,
    requiredClaims: ['exp', 'sub', 'tenant'],
    clockTolerance: clockToleranceSeconds,
    currentDate: new Date(nowMs()),
    ...(settings.issuer === undefined ? {} : { issuer: settings.issuer }),
    ...(settings.audience === undefined ? {} : { audience: settings.audience }),
  });
  const keySet =
    settings.jwksUrl === undefined
      ? undefined
      : createRemoteJWKSet(new URL(settings.jwksUrl), { timeoutDuration: 3_000, cooldownDuration: 5_000 });
  const secret = new TextEncoder().encode(settings.secret ?? '');

  return async (token) => {
    try {
      const verified =
        keySet === undefined
          ? await jwtVerify(token, secret, options(['HS256']))
          : await jwtVerify(token, keySet, options(['RS256', 'ES256', 'EdDSA']));
      return verified.payload;
    } catch (error) {
      if (keySet !== undefined && isKeySetAway(error)) {
        throw problem('unavailable', { retryAfterMs: 1_000, cause: error });
      }
      throw unauthenticated();
    }
  };
}

/** No answer, an error status or no JSON, and JSON that is no key set. */
const keySetFaults: readonly unknown[] = ['ERR_JWKS_TIMEOUT', 'ERR_JOSE_GENERIC', 'ERR_JWKS_INVALID'];

/** True when the key set could not be fetched: a fault of ours, not of the token. */
function isKeySetAway(error: unknown): boolean {
  const code = (error as { code?: unknown }).code;
  return keySetFaults.includes(code) || (error instanceof TypeError && code === undefined);
}

/** Signs an HS256 token as `npm run token` and the tests hand it out. */
export function signToken(
  secret: string,
  claims: { tenant: string; sub: string; scope?: string },
  ttlSeconds: number,
  settings: AuthSettings = {},
): Promise<string> {
  const token = new SignJWT({ tenant: claims.tenant, ...(claims.scope === undefined ? {} : { scope: claims.scope }) })
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .setSubject(claims.sub)
    .setIssuedAt()
    .setExpirationTime(Math.floor(Date.now() / 1_000) + ttlSeconds);
  if (settings.issuer !== undefined) token.setIssuer(settings.issuer);
  if (settings.audience !== undefined) token.setAudience(settings.audience);
  return token.sign(new TextEncoder().encode(secret));
}
