import type postgres from 'postgres';
import type { Tx } from './db/pool.ts';
import type { StreamBody } from './http/stream.ts';
import type { TagList } from './protocol/entity-tag.ts';
import type { Problem } from './protocol/errors.ts';
import type { Prefer } from './protocol/prefer.ts';
import type { Input, Procedure, ReadProcedure, WriteProcedure } from './protocol/procedure.ts';

/** What a handler answers. `body` becomes JSON; an `ETag` among the headers makes the answer conditional. */
export type Answer = {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Instead of a body: takes over the response until the promise settles (event streams). */
  readonly stream?: StreamBody;
};

/** What every handler knows of its request. */
export type Context = {
  readonly tenant: string;
  readonly sub: string;
  readonly traceId: string;
  /** W3C traceparent of this request, for calls to others. */
  readonly traceparent: string;
  readonly ifMatch: TagList;
  readonly ifNoneMatch: TagList;
  /** Other request headers, each as its raw lines. */
  header(name: string): readonly string[];
  /** Aborts when nobody can use the result any more: the fence is lost, or the server must stop now. */
  readonly signal: AbortSignal;
};

/** What a write knows besides. */
export type WriteContext = Context & {
  readonly prefer: Prefer;
  /** The idempotency key, where one was sent. */
  readonly key: string | undefined;
  /** How many owners this key has had, this one included; 1 without a key. */
  readonly attempt: number;
  /** The database's clock when this attempt began. */
  readonly now: Date;
  /** A refusal as an answer: returned from `commit` it is committed and replayed like a success. */
  refuse(problem: Problem): Answer;
};

/** A read: no transaction, no key. */
export type ReadHandler<P extends ReadProcedure> = {
  read(input: Input<P>, ctx: Context): Promise<Answer>;
};

/** When preconditions are checked apart from the write: the request is refused anyway, or its body is not there yet. */
export type CheckMoment = 'refused' | 'before_body';

type Checks<P extends WriteProcedure> = {
  /**
   * Judges the preconditions against the current state by a read alone and throws 404 or 412. Asked only when the request
   * is to be refused anyway (a stale tag comes before an invalid body) or before a body is sent (`Expect: 100-continue`).
   */
  check?(input: Pick<Input<P>, 'params'>, ctx: Context, moment: CheckMoment): Promise<void>;
};

/** A write: `prepare` may be slow and has no transaction; `commit` is short and has one, which also completes the claim. */
export type TransactionHandler<P extends WriteProcedure, Prepared> = Checks<P> & {
  prepare?(input: Input<P>, ctx: WriteContext): Promise<Prepared>;
  commit(tx: Tx, prepared: Prepared, input: Input<P>, ctx: WriteContext): Promise<Answer>;
  /**
   * Instead of both where no key was sent, so that nothing has to be stored with the writes: for work whose statements may
   * each commit by itself, which saves begin and commit.
   */
  alone?(input: Input<P>, ctx: WriteContext): Promise<Answer>;
};

/**
 * A write that is one statement: it runs as a CTE of the claim's completion, in one round trip without begin and commit.
 * `work` must select from `fence`: a row is there only while the claim is ours, or when no key was sent.
 */
export type StatementHandler<P extends WriteProcedure> = Checks<P> & {
  statement(input: Input<P>, ctx: WriteContext): Statement;
};

/** The answer of a one-statement write and the statement. */
export type Statement = {
  readonly answer: Answer;
  work(sql: postgres.Sql): postgres.PendingQuery<postgres.Row[]>;
};

/** A procedure with its handler, ready to be routed. */
export type Mounted =
  | { readonly procedure: ReadProcedure; readonly handler: ReadHandler<ReadProcedure> }
  | {
      readonly procedure: WriteProcedure;
      readonly handler: TransactionHandler<WriteProcedure, unknown> | StatementHandler<WriteProcedure>;
    };

/** The handler type of a procedure. */
export type HandlerOf<P extends Procedure, Prepared> = P extends ReadProcedure
  ? ReadHandler<P>
  : P extends WriteProcedure
    ? TransactionHandler<P, Prepared> | StatementHandler<P>
    : never;

/** Ties a handler to its procedure; the types of params, query and body follow from the procedure. */
export function mount<P extends Procedure, Prepared = undefined>(
  procedure: P,
  handler: HandlerOf<P, Prepared>,
): Mounted {
  // The pairing is checked by the signature; inside the server every handler is called with its own procedure's input.
  return { procedure, handler } as unknown as Mounted;
}
