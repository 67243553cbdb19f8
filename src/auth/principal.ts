/** Who is calling: taken from the verified token and from nowhere else. */
export type Principal = {
  readonly tenant: string;
  readonly sub: string;
  readonly scopes: ReadonlySet<string>;
};

const tenantPattern = /^[A-Za-z0-9._-]{1,64}$/;

/** True for a tenant name as tokens may carry it. */
export function isTenant(value: unknown): value is string {
  return typeof value === 'string' && tenantPattern.test(value);
}

/** The principal that verified claims speak of, or undefined when one is missing or odd. `sub` is at most 255 characters. */
export function principalOf(claims: Readonly<Record<string, unknown>>): Principal | undefined {
  const { tenant, sub, scope } = claims;
  if (!isTenant(tenant)) return undefined;
  if (typeof sub !== 'string' || sub === '' || sub.length > 255 || /[\u0000-\u001f\u007f]/.test(sub)) return undefined;
  if (!sub.isWellFormed()) return undefined;
  if (scope !== undefined && typeof scope !== 'string') return undefined;
  return { tenant, sub, scopes: new Set(scope?.split(' ').filter((word) => word !== '')) };
}
