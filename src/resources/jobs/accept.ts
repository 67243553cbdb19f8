import { placeHold } from '../../credits/holds.ts';
import type { Tx } from '../../db/pool.ts';
import { estimatePromptTokens } from '../../llm/tokens.ts';
import { problem } from '../../protocol/errors.ts';
import { formatUuidV7, idRandomBytes } from '../../protocol/uuid.ts';
import { random } from '../../random.ts';
import { type JobRow, jobSource } from './row.ts';
import { insertJob } from './store.ts';

/** What a job costs and how often it is tried. */
export type JobSettings = { readonly priceMicrosPerToken: number; readonly maxAttempts: number };

/** What is asked of the model. */
export type JobInput = { readonly prompt: string; readonly max_tokens: number };

/** Where a job comes from. */
export type JobOrigin = {
  readonly tenant: string;
  /** The database's clock. */
  readonly now: Date;
  readonly traceparent: string | null;
  readonly deliveryDigest: Uint8Array | null;
};

/**
 * Accepts a job within the transaction at hand: the job, its first event and the hold on the tenant's credits. Undefined: a
 * job of this delivery is there already. Throws 402 `insufficient_credits`.
 */
export async function acceptJob(
  tx: Tx,
  settings: JobSettings,
  origin: JobOrigin,
  input: JobInput,
): Promise<JobRow | undefined> {
  const promptEstimate = estimatePromptTokens(input.prompt);
  const amountMicros = (promptEstimate + input.max_tokens) * settings.priceMicrosPerToken;
  const job = await insertJob(tx.sql, {
    tenant: origin.tenant,
    id: formatUuidV7(origin.now.getTime(), random(idRandomBytes)),
    prompt: input.prompt,
    promptEstimate,
    maxTokens: input.max_tokens,
    priceMicros: settings.priceMicrosPerToken,
    holdMicros: amountMicros,
    maxAttempts: settings.maxAttempts,
    createdAt: origin.now,
    traceparent: origin.traceparent,
    deliveryDigest: origin.deliveryDigest,
  });
  if (job === undefined) return undefined;
  if (!(await placeHold(tx.sql, { source: jobSource(job), amountMicros }))) throw problem('insufficient_credits');
  return job;
}
