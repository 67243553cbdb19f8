import type postgres from 'postgres';
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
 * Stores the answer if the claim is still ours, and only inside a transaction: a COMMIT must be still to come. A pool has none,
 * nor has a driver that has silently gone on with another session.
 *
 * Whoever has written has a transaction id. For work that wrote nothing one is asked for first, and must be the same later.
 */
async function completeOn(driver: Driver, keySchema: string, claim: Claim, answer: StoredAnswer): Promise<void> {
  const transaction = queriesThrough(runOf(driver), keySchema);
  const complete = async (begun: (sql: postgres.Sql) => postgres.PendingQuery<postgres.Row[]>) => {
    const [state] = await transaction.query(
      (sql) => sql<{ begun: boolean; fenced: boolean }[]>`
        with state as materialized (select ${begun(sql)} as begun),
        fence as (${completion(sql, claim, answer, transaction, sql`and (select begun from state)`)})
        select begun, exists (select 1 from fence) as fenced from state`,
    );
    return state ?? { begun: false, fenced: false };
  };
  let state = await complete((sql) => sql`pg_current_xact_id_if_assigned() is not null`);
  if (!state.begun) {
    const [own] = await transaction.query((sql) => sql<{ id: string }[]>`select pg_current_xact_id()::text as id`);
    state = await complete((sql) => sql`pg_current_xact_id()::text = ${own?.id ?? ''}`);
  }
  if (!state.begun) throw new Error('complete needs the transaction that your writes are in');
  if (!state.fenced) throw new FenceLost('the key has another owner');
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
      const stored = storedAnswer(answer);
      await completeOn(transaction, keySchema, claim, stored);
      isCompleted = true;
      return stored;
    },
  };
  return { owner, completed: () => isCompleted };
}
