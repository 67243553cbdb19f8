import { createHash } from 'node:crypto';
import * as v from 'valibot';
import type { Database } from '../../db/pool.ts';
import { canonicalize } from '../../protocol/canonical-json.ts';
import { problem } from '../../protocol/errors.ts';
import { jobPayload } from '../../protocol/schemas.ts';
import { acceptJob, type JobSettings } from './accept.ts';
import type { JobRow } from './row.ts';
import { findDelivery } from './store.ts';

/** What a delivery came to: a new job, or the one that an earlier delivery of the same has become. */
export type Delivered = { readonly kind: 'created' | 'duplicate'; readonly job: JobRow };

/**
 * The key of what comes without one (a queue's redelivery, a webhook): the same for the same tenant, kind and payload. Only
 * the sender knows whether two equal payloads are two intents; who means two puts an id of its own into the payload.
 */
export function deliveryDigest(tenant: string, kind: string, payload: unknown): Buffer {
  // As JSON, so that the parts cannot run into one another.
  return createHash('sha256')
    .update(JSON.stringify([tenant, kind, canonicalize(payload)]))
    .digest();
}

/**
 * Accepts a job that was delivered without a client's key: however often and from however many consumers at once, it is one
 * job, one hold and one charge. `payload` is what was delivered: `{prompt, max_tokens?}`. Throws 422 `invalid_body`, and 402
 * `insufficient_credits`, after which the delivery may be tried again.
 */
export async function enqueueDelivery(
  db: Database,
  settings: JobSettings,
  tenant: string,
  kind: 'generate',
  payload: unknown,
): Promise<Delivered> {
  const parsed = v.safeParse(jobPayload, payload);
  if (!parsed.success)
    throw problem('invalid_body', { message: `The delivery is no job: ${parsed.issues[0].message}.` });
  const digest = deliveryDigest(tenant, kind, payload);
  const job = await db.transaction(async (tx) => {
    const [clock] = await tx.sql<{ now: Date }[]>`select now()`;
    const origin = { tenant, now: clock?.now ?? new Date(), traceparent: null, deliveryDigest: digest };
    return await acceptJob(tx, settings, origin, parsed.output);
  });
  if (job !== undefined) return { kind: 'created', job };
  const earlier = await findDelivery(db, tenant, digest);
  if (earlier === undefined) throw new Error('a delivery was neither accepted nor there');
  return { kind: 'duplicate', job: earlier };
}
