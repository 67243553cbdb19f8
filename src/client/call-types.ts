import type * as v from 'valibot';
import type { Input, Procedure } from '../protocol/procedure.ts';

/** A table of procedures by name: `contract`, or one of your own. */
export type ProcedureTable = { readonly [name: string]: Procedure };

type Empty = Record<never, never>;

type ParamsPart<P extends Procedure> = keyof Input<P>['params'] extends never
  ? Empty
  : { readonly params: Input<P>['params'] };

/** What a query name takes: its text, or what the server makes of it (`limit: 20`). */
type QueryPart<P extends Procedure> = P extends { query: infer Q extends v.ObjectEntries }
  ? {
      readonly query?: {
        readonly [Name in keyof Q]?: v.InferInput<Q[Name]> | v.InferOutput<Q[Name]> | undefined;
      };
    }
  : Empty;

type BodyPart<P extends Procedure> = P extends { body: infer B extends v.GenericSchema }
  ? { readonly body: v.InferInput<B> }
  : Empty;

/** `ifMatch` is a tag as it was read, `W/` and quotes included, or `*`. `create` sends `If-None-Match: *`. */
type ConditionPart<P extends Procedure> = P extends { condition: 'if_match' }
  ? { readonly ifMatch: string }
  : P extends { condition: 'if_match_or_create' }
    ?
        | { readonly ifMatch: string; readonly create?: undefined }
        | { readonly create: true; readonly ifMatch?: undefined }
    : Empty;

/** What a call of the procedure is given; its parts are those of the handler on the other side. */
export type CallInput<P extends Procedure> = ParamsPart<P> & QueryPart<P> & BodyPart<P> & ConditionPart<P>;

/** The arguments after the procedure's name: an input without required members may be left out. */
export type CallArguments<P extends Procedure, Options> =
  Empty extends CallInput<P>
    ? readonly [input?: CallInput<P>, options?: Options]
    : readonly [input: CallInput<P>, options?: Options];

/** A success answer, as the table says it; `body` is undefined where it has none. Of several procedures: the answer of one of them. */
export type Answered<P extends Procedure> = P extends Procedure
  ? {
      readonly [Status in keyof P['answers'] & number]: {
        readonly status: Status;
        readonly body: P['answers'][Status] extends infer S extends v.GenericSchema ? v.InferOutput<S> : undefined;
      } & AnswerFacts;
    }[keyof P['answers'] & number]
  : never;

/** What every success answer tells besides status and body. */
export type AnswerFacts = {
  readonly headers: Headers;
  /** The entity tag, for the next `ifMatch`. */
  readonly tag: string | undefined;
  /** True when an earlier try had already done the work and this is its stored answer. */
  readonly replayed: boolean;
  /** True when a 304 confirmed the copy that this client remembers. */
  readonly fromMemory: boolean;
  /** The key the request was sent with; undefined for reads. */
  readonly key: string | undefined;
  readonly attempts: number;
  readonly traceId: string;
};

/** Names of the table's procedures that answer with one body: all but the streams. */
export type CallableName<T extends ProcedureTable> = {
  [Name in keyof T]: T[Name] extends { stream: true } ? never : Name;
}[keyof T] &
  string;

/** Names of the table's procedures that write. */
export type WriteName<T extends ProcedureTable> = {
  [Name in keyof T]: T[Name] extends { method: 'GET' } ? never : Name;
}[keyof T] &
  string;

/** Names of the table's procedures that answer with a stream of events. */
export type StreamName<T extends ProcedureTable> = {
  [Name in keyof T]: T[Name] extends { stream: true } ? Name : never;
}[keyof T] &
  string;
