import type * as v from 'valibot';
import type { ErrorCode } from './errors.ts';

type Schema = v.GenericSchema;

type Common = {
  /** `/v1/things/{id}`: names in braces become `params`. */
  readonly path: `/${string}`;
  readonly summary: string;
  /** What a caller must know beyond the flags, as a paragraph of Markdown for the references. */
  readonly details?: string;
  /** The scope a token must hold. */
  readonly scope?: string;
  readonly query?: v.ObjectEntries;
  /** Success status → schema of the body (null: no body). */
  readonly answers: { readonly [status: number]: Schema | null };
  /** Headers of success answers beyond those every answer has. */
  readonly answerHeaders?: readonly string[];
  /** Codes beyond those that follow from the flags. */
  readonly problems?: readonly ErrorCode[];
};

type Body = {
  readonly body?: Schema;
  /** A body that is taken, for the references. */
  readonly example?: Readonly<Record<string, unknown>>;
  /** Default `application/json`. */
  readonly mediaType?: 'application/json' | 'application/merge-patch+json';
  /** `if_match`: 428 without it. `if_match_or_create`: If-Match, or `If-None-Match: *`. */
  readonly condition?: 'if_match' | 'if_match_or_create';
  /** Counts against the tenant's rate limit. */
  readonly spends?: true;
  /** `prepare` pays for something: the claim is flushed to disk before it runs. */
  readonly pays?: true;
};

/** One procedure of the contract. A POST without `key: 'required'` is not of this type, so it does not compile. */
export type Procedure =
  | (Common & {
      readonly method: 'GET';
      /** Answers with `ETag` and obeys `If-None-Match` and `If-Match`. */
      readonly tag?: true;
      /** Answers `text/event-stream`. */
      readonly stream?: true;
    })
  | (Common & Body & { readonly method: 'POST'; readonly key: 'required' })
  | (Common & Body & { readonly method: 'PUT' | 'PATCH' | 'DELETE'; readonly key: 'accepted' });

/** A procedure that reads. */
export type ReadProcedure = Extract<Procedure, { method: 'GET' }>;
/** A procedure that writes. */
export type WriteProcedure = Exclude<Procedure, { method: 'GET' }>;

/** Members that a procedure of this method does not have: a misspelt flag would silently take a guarantee away. */
type Misspelt<P extends Procedure> = Exclude<
  keyof P,
  P extends ReadProcedure ? keyof ReadProcedure : keyof WriteProcedure | keyof Body
>;

/** Checks a procedure's shape and keeps its literal type. */
export function procedure<const P extends Procedure>(definition: P & { readonly [Name in Misspelt<P>]: never }): P {
  return definition;
}

type ParamNames<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParamNames<Rest>
  : never;

/** What a handler is given: path parameters, query and body, parsed and typed by the procedure. */
export type Input<P extends Procedure> = {
  readonly params: { readonly [Name in ParamNames<P['path']>]: string };
  readonly query: P extends { query: infer Q extends v.ObjectEntries }
    ? v.InferOutput<v.ObjectSchema<Q, undefined>>
    : Record<never, never>;
  readonly body: P extends { body: infer B extends Schema } ? v.InferOutput<B> : undefined;
};
