import { isRecord } from '../protocol/json-object.ts';

/**
 * The bearer token, or a function that answers it. The function is asked at the start of every call, so it should remember its
 * token; `rejected` is the one that the server has just refused with 401, where a fresh one is needed.
 */
export type TokenSource = string | ((ask: { readonly rejected: string | undefined }) => string | Promise<string>);

/** Asks for the token of a call; with `rejected`, for its successor. */
export async function askToken(source: TokenSource, rejected?: string): Promise<string> {
  return typeof source === 'string' ? source : await source({ rejected });
}

/**
 * True when both tokens name a tenant and not the same one. A key means something within its tenant only: a retry under another
 * tenant's token would do the work a second time, in the wrong place. The tokens are read, not verified.
 */
export function isOtherTenant(token: string, successor: string): boolean {
  const [before, after] = [tenantOf(token), tenantOf(successor)];
  return before !== undefined && after !== undefined && before !== after;
}

/** The tenant a JWT names, unverified; undefined for a token of another kind. */
function tenantOf(token: string): string | undefined {
  try {
    const payload = token.split('.')[1] ?? '';
    const bytes = Uint8Array.from(atob(payload.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0));
    const claims: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return isRecord(claims) && typeof claims.tenant === 'string' ? claims.tenant : undefined;
  } catch {
    return undefined;
  }
}
