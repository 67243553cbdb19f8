import type { Answer } from '../handler.ts';
import { type Claim, completion, type Owned, type StoredAnswer } from '../idempotency/claims.ts';
import { FenceLost } from '../idempotency/fence-lost.ts';
import { storedAnswer } from '../pipeline/stored.ts';
import type { TagList } from '../protocol/entity-tag.ts';
import { type Driver, runOf } from './drivers.ts';
import { queriesThrough } from './statement.ts';

/** A request that owns its key: the work runs now, and for this owner alone. */
export type Owner = {
  readonly tenant: string;
  readonly key: string;
  /** The body as JSON, read so that it has one meaning; undefined without one. Check its shape here: a 4xx frees the key. */
  readonly body: unknown;
  readonly ifMatch: TagList;
  readonly ifNoneMatch: TagList;
  /** How many owners the key has had, this one included. */
  readonly attempt: number;
  /** The database's clock when this owner began. */
  readonly now: Date;
  /** Aborts when the key is somebody else's now, or when the process must stop: nobody can use the result any more. */
  readonly signal: AbortSignal;
  /**
   * Stores the answer on the transaction of the work, as its last statement. Rejects when the key is somebody else's now:
   * let that reject the transaction too, and everything is rolled back.
   */
  complete(transaction: Driver, answer: Answer): Promise<StoredAnswer>;
};

/**
 * Stores the answer if the claim is still ours and the statement is inside a transaction that was begun before it: a COMMIT
 * is still to come. A pool, or a driver that has silently gone on with another session, has none.
 */
export async function completeOn(
  transaction: Driver,
  keySchema: string,
  claim: Claim,
  answer: Answer,
): Promise<StoredAnswer> {
  const stored = storedAnswer(answer);
  const inTransaction = queriesThrough(runOf(transaction), keySchema);
  const [state] = await inTransaction.query(
    (sql) => sql<{ begun: boolean; fenced: boolean }[]>`
      with state as (select transaction_timestamp() < statement_timestamp() as begun),
      fence as (${completion(sql, claim, stored, inTransaction, sql`and (select begun from state)`)})
      select begun, exists (select 1 from fence) as fenced from state`,
  );
  if (state?.begun !== true) throw new Error('complete needs the transaction that your writes are in');
  if (!state.fenced) throw new FenceLost('the key has another owner');
  return stored;
}

/** An owner of the claim. `completed` tells afterwards whether the work has stored its answer. */
export function createOwner(
  keySchema: string,
  claim: Claim,
  owned: Owned,
  request: Pick<Owner, 'body' | 'ifMatch' | 'ifNoneMatch' | 'signal'>,
): { readonly owner: Owner; readonly completed: () => boolean } {
  let isCompleted = false;
  const owner: Owner = {
    ...request,
    tenant: claim.tenant,
    key: claim.key,
    attempt: owned.attempt,
    now: owned.now,
    async complete(transaction, answer) {
      const stored = await completeOn(transaction, keySchema, claim, answer);
      isCompleted = true;
      return stored;
    },
  };
  return { owner, completed: () => isCompleted };
}
