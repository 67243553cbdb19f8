import { PgDialect } from 'drizzle-orm/pg-core';
import { PostgresJsDatabase, PostgresJsSession } from 'drizzle-orm/postgres-js';
import type postgres from 'postgres';
import type { Session } from './session.ts';

/** drizzle's builder on the connection of a transaction. */
export type Orm = Omit<PostgresJsDatabase<Record<string, never>>, 'transaction'>;

/**
 * The inside of a transaction. `sql` and `orm` share its connection. After the first error, after the end and once the
 * session is lost every further statement is rejected: nothing of it ever runs outside the transaction.
 */
export type Tx = {
  readonly sql: postgres.Sql;
  readonly orm: Orm;
};

/** What a statement in flight shows of itself; `state` is the server process once it was handed to the socket. */
export type Sent = { readonly state: { pid: number; secret: number } | null };

/** What a transaction has done so far. */
export type TransactionState = {
  /** The driver's first error: why no further statement may run. */
  failed: unknown;
  over: boolean;
  begin: Sent | undefined;
  commitSent: boolean;
};

/** A statement of postgres.js as it is made: not sent before somebody waits for it, and then through its `handler`. */
type DriverQuery = postgres.PendingQuery<postgres.Row[]> &
  Sent & {
    handler: (query: DriverQuery) => void;
    reject(error: unknown): void;
    cursorFn?: unknown;
    streaming?: boolean;
  };

const dialect = new PgDialect();

/** Runs `work` between BEGIN and COMMIT on the session. The caller bounds the time and discards the session when it was lost. */
export async function runTransaction<T>(
  session: Session,
  state: TransactionState,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  // Not awaited: BEGIN travels with the first statement. Should it fail, the session is lost and so is all that follows.
  const begin = session.sql.unsafe(session.begin).execute() as unknown as DriverQuery;
  state.begin = begin;
  begin.catch((error: unknown) => {
    state.failed ??= error;
  });
  let result: T;
  try {
    result = await work(openTx(session, state));
    if (state.failed !== undefined) throw state.failed;
    state.over = true;
  } catch (error) {
    state.over = true;
    if (session.lost === undefined) await finish(session, state, 'rollback');
    throw error;
  }
  // The callback may have left a statement behind: it is sent before COMMIT, and its failure makes COMMIT a rollback.
  state.commitSent = true;
  const command = await finish(session, state, 'commit');
  if (command !== 'COMMIT') {
    throw state.failed ?? new Error('the transaction was rolled back: a statement of it had failed');
  }
  return result;
}

async function finish(session: Session, state: TransactionState, statement: 'commit' | 'rollback'): Promise<string> {
  try {
    const { command } = await session.sql.unsafe(statement);
    return command;
  } catch (error) {
    state.failed = error;
    throw error;
  }
}

function openTx(session: Session, state: TransactionState): Tx {
  const handler = (session.sql`` as unknown as DriverQuery).handler;
  const guard = (query: DriverQuery): void => {
    const refusal = refusalOf(query, session, state);
    if (refusal !== undefined) query.reject(refusal);
    else handler(query);
    // Called off the prototype: the driver's own `catch` would count as waiting for it. Also marks the rejection as seen.
    Promise.prototype.catch.call(query, (error: unknown) => {
      state.failed ??= error;
    });
  };
  const guarded = <Q>(query: Q): Q => {
    if (typeof query === 'object' && query !== null && 'handler' in query) query.handler = guard;
    return query;
  };
  const sql = guardSql(session.sql, guarded);
  let orm: Orm | undefined;
  return {
    sql,
    get orm() {
      orm ??= new PostgresJsDatabase(dialect, new PostgresJsSession(sql, dialect, undefined), undefined);
      return orm;
    },
  };
}

function refusalOf(query: DriverQuery, session: Session, state: TransactionState): unknown {
  if (state.over) return new Error('the transaction is over: a statement came after its end');
  if (session.lost !== undefined) return session.lost;
  if (query.cursorFn !== undefined || query.streaming) return new Error('no cursors and no COPY inside a transaction');
  return state.failed;
}

/** The driver's functions that make a statement, each statement passed through `guarded`; those that leave the connection throw. */
function guardSql(sql: postgres.Sql, guarded: <Q>(query: Q) => Q): postgres.Sql {
  const template = (first: never, ...rest: never[]) => guarded(sql(first, ...rest));
  const unsafe = (text: string, args?: never[]) =>
    // Prepared when there are parameters, which saves drizzle's statements a round trip each.
    guarded(args === undefined || args.length === 0 ? sql.unsafe(text) : sql.unsafe(text, args, { prepare: true }));
  return Object.assign(template, {
    unsafe,
    array: sql.array,
    json: sql.json,
    typed: sql.typed,
    types: sql.types,
    options: sql.options,
    ...unsupported,
  }) as unknown as postgres.Sql;
}

const refuse = () => {
  throw new Error('not inside a transaction: it has one connection and no savepoints');
};

/** What the driver offers besides, and what must not be used here. */
export const unsupported = { begin: refuse, reserve: refuse, listen: refuse, subscribe: refuse, savepoint: refuse };
