import { createHash } from 'node:crypto';

const remembered = new Map<string, string>();
const maxRemembered = 10_000;

/** A short fixed digest of a tenant (60 bits, base64url) that makes its entity tags differ from every other tenant's. */
export function tenantDigest(tenant: string): string {
  const known = remembered.get(tenant);
  if (known !== undefined) return known;
  const made = createHash('sha256').update(tenant).digest('base64url').slice(0, 10);
  if (remembered.size < maxRemembered) remembered.set(tenant, made);
  return made;
}
