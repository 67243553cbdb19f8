import { createHash } from 'node:crypto';

/**
 * The `Idempotency-Key` of one step's provider call: the same for every try of it, another one for every other.
 * A digest, because tenant and key are nobody's business outside, and because providers bound the length.
 */
export function deriveCallKey(of: { readonly tenant: string; readonly key: string; readonly step: string }): string {
  // As JSON: joined by a separator, ("a|b", "c") and ("a", "b|c") would be one.
  const digest = createHash('sha256')
    .update(JSON.stringify([of.tenant, of.key, of.step]))
    .digest('base64url');
  return `rs-${digest}`;
}
