import { patiently } from '../db/patiently.ts';
import type { Database, Tx } from '../db/pool.ts';
import { SERIALIZATION_FAILURE, sqlstateOf } from '../db/sqlstate.ts';
import type { Answer, StatementHandler, TransactionHandler, WriteContext } from '../handler.ts';
import { problemReply } from '../http/problem-reply.ts';
import type { Reply } from '../http/reply.ts';
import { type Claim, complete, completeWith, type StoredAnswer } from '../idempotency/claims.ts';
import { FenceLost } from '../idempotency/fence-lost.ts';
import type { Keyed, KeyedAnswer, KeyedRefusal, KeyedRequest, KeyOutcome } from '../idempotency/keyed.ts';
import { requestFingerprint } from '../idempotency/request.ts';
import { type Problem, problem } from '../protocol/errors.ts';
import type { WriteProcedure } from '../protocol/procedure.ts';
import type { Head } from './receive.ts';
import { grantedWaitMs, keyedReply, storedAnswer } from './stored.ts';

/** Takes one request off the tenant's budget, or throws 429 `rate_limited`. */
export type Spend = (tenant: string) => Promise<void>;

/** What a write needs of the process. */
export type WriteDeps = {
  readonly db: Database;
  readonly keyed: Keyed;
  readonly spend: Spend;
  /** The server takes no new work: what is not answered by its key is refused with this. */
  readonly refusal?: Problem;
};

/** One write on its way: all that was decided in memory, before anything is claimed. */
export type Write = {
  readonly procedure: WriteProcedure;
  readonly handler: TransactionHandler<WriteProcedure, unknown> | StatementHandler<WriteProcedure>;
  readonly head: Head;
  readonly path: string;
  readonly query: string;
  readonly params: Readonly<Record<string, string>>;
  readonly parsedQuery: Record<string, unknown>;
  /** The body as it was sent; undefined: none. */
  readonly sentBody: unknown;
  /** The body by its schema, or the 422 that is due after everything that goes before it. */
  readonly body: { readonly body: unknown } | { readonly refusal: Problem };
  readonly context: Omit<WriteContext, 'key' | 'attempt' | 'now' | 'prefer' | 'refuse'>;
  readonly clientGone: AbortSignal;
};

/** A write's end: the answer, and what the log calls the key's part in it. */
export type WriteEnd = { readonly reply: Reply; readonly keyOutcome: KeyOutcome };

/** A refusal in the key's name, with what the log calls it. Anything else is thrown as it is. */
export class KeyRefused extends Error {
  override readonly name = 'KeyRefused';
  readonly refusal: KeyedRefusal;
  readonly waitSeconds: number | undefined;
  constructor(refusal: KeyedRefusal, waitSeconds: number | undefined) {
    super(refusal.problem.message);
    this.refusal = refusal;
    this.waitSeconds = waitSeconds;
  }
}

/** 428 for a write that must name a version and does not. */
export function missingCondition(
  procedure: WriteProcedure,
  head: Pick<Head, 'ifMatch' | 'ifNoneMatch'>,
): Problem | undefined {
  const { condition } = procedure;
  if (condition === undefined || head.ifMatch.kind !== 'absent') return undefined;
  if (condition === 'if_match_or_create' && head.ifNoneMatch.kind === 'any') return undefined;
  return problem('precondition_required');
}

/** Steps 6 to 10 of a write. Throws problems and KeyRefused. */
export async function executeWrite(deps: WriteDeps, write: Write): Promise<WriteEnd> {
  const refusal =
    deps.refusal ??
    missingCondition(write.procedure, write.head) ??
    ('refusal' in write.body ? write.body.refusal : undefined);
  const { key } = write.head;
  if (refusal !== undefined) return await refuse(deps, write, refusal);
  if (key === undefined) {
    return { reply: await runUnkeyed(deps, write), keyOutcome: 'none' };
  }
  const request = keyedRequest(write, key);
  const end = await deps.keyed.run(request, async (claim, owned, signal) => {
    if (write.procedure.spends) await deps.spend(write.context.tenant);
    return await runOwned(deps, write, claim, { key, attempt: owned.attempt, now: owned.now, signal });
  });
  return settle(end, request.waitMs / 1_000);
}

/**
 * A request that memory alone can refuse still gets what its key has stored, is told of an earlier version before a wrong
 * body, and counts against the rate limit where the route spends: the order of the contract, for requests that lose it time.
 */
async function refuse(deps: WriteDeps, write: Write, refusal: Problem): Promise<WriteEnd> {
  const { key } = write.head;
  const request = key === undefined ? undefined : keyedRequest(write, key);
  const before = request && (await deps.keyed.peek(request));
  if (before !== undefined) return settle(before, 0);
  if (refusal === deps.refusal) throw refusal;
  if (write.procedure.spends) await deps.spend(write.context.tenant);
  if (refusal.code !== 'precondition_required') {
    try {
      await write.handler.check?.({ params: write.params }, write.context, 'refused');
    } catch (error) {
      // Its twin may have committed between the two looks, and one's own success is not a failed precondition.
      const after = request && (await deps.keyed.peek(request));
      if (after !== undefined) return settle(after, 0);
      throw error;
    }
  }
  throw refusal;
}

function settle(end: KeyedAnswer | KeyedRefusal, waitSeconds: number): WriteEnd {
  const granted = end.parked ? waitSeconds : undefined;
  if ('problem' in end) throw new KeyRefused(end, granted);
  return { reply: keyedReply(end, granted), keyOutcome: end.outcome };
}

function keyedRequest(write: Write, key: string): KeyedRequest {
  const { procedure, head, path, query, sentBody } = write;
  return {
    tenant: write.context.tenant,
    key,
    fingerprint: requestFingerprint({ ...head, method: procedure.method, path, query, body: sentBody }),
    durable: procedure.pays === true,
    waitMs: grantedWaitMs(head.prefer.waitSeconds),
    clientGone: write.clientGone,
  };
}

type Ownership = { key: string | undefined; attempt: number; now: Date; signal: AbortSignal };

function contextOf(write: Write, ownership: Ownership): WriteContext {
  const { prefer } = write.head;
  const refusal = (refused: Problem): Answer => {
    const reply = problemReply(refused, write.context.traceId, true);
    return { status: reply.status, headers: reply.headers, body: JSON.parse(Buffer.from(reply.body ?? '').toString()) };
  };
  return { ...write.context, ...ownership, prefer, refuse: refusal };
}

function inputOf(write: Write) {
  return {
    params: write.params,
    query: write.parsedQuery,
    body: 'body' in write.body ? write.body.body : undefined,
    // Typed per procedure at `mount`; here every handler is called with its own procedure's input.
  } as never;
}

/** The owner's work: prepare without a transaction, then writes and completion in one. */
async function runOwned(deps: WriteDeps, write: Write, claim: Claim, ownership: Ownership): Promise<StoredAnswer> {
  const { handler } = write;
  const ctx = contextOf(write, ownership);
  const input = inputOf(write);
  if ('statement' in handler) {
    const { answer, work } = handler.statement(input, ctx);
    const stored = storedAnswer(answer);
    if (!(await completeWith(deps.db, claim, stored, work))) throw new FenceLost();
    return stored;
  }
  const prepared = await handler.prepare?.(input, ctx);
  const commit = () =>
    transaction(deps.db, async (tx) => {
      const stored = storedAnswer(await handler.commit(tx, prepared, input, ctx));
      if (!(await complete(tx.sql, claim, stored, deps.db))) throw new FenceLost();
      return stored;
    });
  // Should a first commit have been done and its answer lost, the fence is gone and the key has the answer.
  return write.procedure.pays ? await patiently(ctx.signal, commit, paidCommitMs) : await commit();
}

/** What was paid for in `prepare` is committed again and again for so long while the database is away. Milliseconds. */
const paidCommitMs = 30_000;

async function runUnkeyed(deps: WriteDeps, write: Write): Promise<StoredAnswer> {
  const { handler } = write;
  if (write.procedure.spends) await deps.spend(write.context.tenant);
  const ctx = contextOf(write, { key: undefined, attempt: 1, now: new Date(), signal: write.context.signal });
  const input = inputOf(write);
  if ('statement' in handler) {
    const { answer, work } = handler.statement(input, ctx);
    await deps.db.query((sql) => sql`with fence as (select 1) ${work(sql)}`);
    return storedAnswer(answer);
  }
  const { alone } = handler;
  if (alone !== undefined) return storedAnswer(await retried(() => alone(input, ctx)));
  const prepared = await handler.prepare?.(input, ctx);
  return await transaction(deps.db, async (tx) => storedAnswer(await handler.commit(tx, prepared, input, ctx)));
}

/**
 * Tries of one transaction. Under read committed the first is the only one; on a server whose default is stricter, whoever
 * waited for a faster writer fails with 40001, and learns only from a fresh snapshot what is there now.
 */
const maxTries = 5;

function transaction<T>(db: Database, work: (tx: Tx) => Promise<T>): Promise<T> {
  return retried(() => db.transaction(work));
}

async function retried<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (tries === maxTries || sqlstateOf(error) !== SERIALIZATION_FAILURE) throw error;
    }
  }
}
