import type { Source } from '../../credits/entry.ts';
import { placeHoldAlone, releaseHoldsOf, settle } from '../../credits/holds.ts';
import type { Database } from '../../db/pool.ts';
import type { WriteContext } from '../../handler.ts';
import { deriveCallKey } from '../../llm/call-key.ts';
import type { Provider } from '../../llm/provider.ts';
import { type CountedUsage, type ModelRun, runModel } from '../../llm/run.ts';
import { estimatePromptTokens } from '../../llm/tokens.ts';
import { problem } from '../../protocol/errors.ts';
import { formatUuidV7, idRandomBytes } from '../../protocol/uuid.ts';
import { random } from '../../random.ts';
import { watch } from './watch.ts';

/** What rewriting needs of the process. */
export type RewriteParts = {
  readonly db: Database;
  readonly provider: Provider;
  readonly timeoutMs: number;
  readonly priceMicrosPerToken: number;
};

/** What to ask of the model, for which version of which document. */
export type RewriteCall = {
  readonly docId: string;
  readonly version: number;
  readonly prompt: string;
  readonly maxTokens: number;
  /** Whether what is being written can't be used any more; one cheap read. */
  hasMoved(): Promise<boolean>;
};

/** What the model wrote, and the hold that pays for it. `isWhole`: false when the call was ended because the document moved. */
export type Written = {
  readonly text: string;
  readonly isWhole: boolean;
  readonly source: Source;
  readonly chargeMicros: number;
};

/** How often a rewrite looks whether its document has moved, in milliseconds: paying stops soon after. */
const lookMs = 1_000;
/** A hold outlives its call by so much, in milliseconds: time enough to commit. After it its owner must be dead. */
const holdMarginMs = 60_000;
/** How long to wait for a provider that is busy and does not say, in milliseconds. */
const busyRetryMs = 1_000;

/** The document has moved on: what is being written can only become a draft. */
class Moved extends Error {
  override readonly name = 'Moved';
}

/**
 * Pays for one call of the model: holds credits in a transaction of its own, calls without a connection, and leaves the hold
 * to whoever commits. Throws 402, and 502, 503 or 504 with the hold released; `ctx.signal` ends the call.
 */
export async function callForRewrite(parts: RewriteParts, call: RewriteCall, ctx: WriteContext): Promise<Written> {
  const source = await hold(parts, call, ctx);
  const stop = new AbortController();
  const leave = () => stop.abort(ctx.signal.reason);
  ctx.signal.addEventListener('abort', leave);
  if (ctx.signal.aborted) leave();
  const stopWatching = watch(call.hasMoved, lookMs, () => stop.abort(new Moved()));
  let run: ModelRun | undefined;
  try {
    run = await runModel(
      parts.provider,
      {
        prompt: call.prompt,
        maxTokens: call.maxTokens,
        signal: stop.signal,
        idempotencyKey: deriveCallKey({
          tenant: ctx.tenant,
          key: ctx.key ?? source.id,
          step: `rewrite ${call.docId} v${call.version}`,
        }),
        traceparent: ctx.traceparent,
      },
      { timeoutMs: parts.timeoutMs },
    );
    const hasMoved = run.kind === 'aborted' && run.reason instanceof Moved;
    if (run.kind !== 'answered' && !hasMoved) throw failureOf(run);
    const chargeMicros = tokensOf(run.usage) * parts.priceMicrosPerToken;
    return { text: run.text, isWhole: !hasMoved, source, chargeMicros };
  } catch (error) {
    // Nothing came of it, so nothing is charged. If the database is away, the hold runs out.
    await release(parts.db, source, run).catch(() => {});
    throw error;
  } finally {
    stopWatching();
    ctx.signal.removeEventListener('abort', leave);
  }
}

async function hold(parts: RewriteParts, call: RewriteCall, ctx: WriteContext): Promise<Source> {
  const { tenant, now } = ctx;
  // Names the document, and is another one for every try: each has its own hold and its own end in the ledger.
  const id = `${call.docId}:${formatUuidV7(now.getTime(), random(idRandomBytes))}`;
  const source: Source = { tenant, type: 'rewrite', id };
  const amountMicros = (estimatePromptTokens(call.prompt) + call.maxTokens) * parts.priceMicrosPerToken;
  const owner = { requestKey: ctx.key ?? id, forMs: parts.timeoutMs + holdMarginMs };
  // An owner before us may have died with its hold: it must not be what we lack.
  if (ctx.attempt > 1) await releaseHoldsOf(parts.db, tenant, owner.requestKey);
  if (!(await placeHoldAlone(parts.db, { source, amountMicros, owner }))) throw problem('insufficient_credits');
  return source;
}

/** Provider trouble as its problem; a call that we ended ourselves ends in the reason. */
function failureOf(run: Exclude<ModelRun, { kind: 'answered' }>): unknown {
  if (run.kind === 'aborted') return run.reason;
  const { code, message, mayRetry, retryAfterMs } = run.error;
  return problem(code, {
    message,
    cause: run.error,
    ...(mayRetry ? {} : { shouldRetry: false }),
    ...(code === 'upstream_busy' ? { retryAfterMs: retryAfterMs ?? busyRetryMs } : {}),
  });
}

function release(db: Database, source: Source, run: ModelRun | undefined): Promise<unknown> {
  const isUnknown = run?.sent === true && (run.kind !== 'failed' || run.error.outcomeUnknown);
  return db.transaction(({ sql }) => settle(sql, source, { chargeMicros: 0, unknownAttempts: isUnknown ? 1 : 0 }));
}

function tokensOf(usage: CountedUsage): number {
  return usage.promptTokens + usage.completionTokens;
}
