/*
 * What the clients write down while they work: all that the checker knows beside the final database. Times are milliseconds
 * since the run began.
 */

/** What a client may want. Each leaves a trace of its own in the database (`markerOf`). */
export type IntentKind =
  | 'order'
  | 'credit'
  | 'new_doc'
  | 'put_new'
  | 'remove'
  | 'edit'
  | 'patch'
  | 'unkeyed_edit'
  | 'rewrite'
  | 'job';

/** Something a client wanted done once, however often it was sent. */
export type Intent = {
  readonly id: number;
  readonly kind: IntentKind;
  readonly tenant: string;
  /** Undefined: sent without a key. */
  readonly key: string | undefined;
  /** The document it is about. */
  readonly docId?: string;
  /** The version that was read before: an edit's result is the next one. */
  readonly baseVersion?: number;
  /** The credits it adds, in micros; unique in its tenant. */
  readonly amountMicros?: number;
};

/** What the network did to a try; the client asks the proxy for it, so that its log knows. */
export type NetworkFault = 'none' | 'refuse' | 'drop_answer' | 'cut_answer' | 'hang' | 'delay' | 'duplicate';

/** One request and what came of it. */
export type Try = {
  readonly intent: number;
  /** Which copy of the intent, from 0: copies are clients of their own that know nothing of one another. */
  readonly copy: number;
  /** Sent after the storm, when nothing is broken any more. */
  readonly calm: boolean;
  readonly server: string;
  readonly network: NetworkFault;
  readonly fromMs: number;
  readonly toMs: number;
  /** How long the client would have waited. */
  readonly limitMs: number;
  readonly end: Answered | { readonly kind: 'no_answer'; readonly reason: string };
};

/** An answer that was read whole. */
export type Answered = {
  readonly kind: 'answered';
  readonly status: number;
  readonly body: string;
  readonly code: string | undefined;
  /** The header Idempotent-Replayed: on every answer that is stored under the key. */
  readonly replayed: 'true' | 'false' | undefined;
  /** Location, Link and ETag, as one string. */
  readonly headers: string;
};

/** A document as a reader saw it. */
export type Seen = { readonly tenant: string; readonly docId: string; readonly version: number; readonly body: string };

/** Something that was broken on purpose. While it lasts, whatever it names may be slower than it should be. */
export type Fault = { readonly kind: string; readonly what: string; readonly fromMs: number; readonly toMs: number };

/** The whole log of a run. */
export type History = {
  readonly intents: readonly Intent[];
  readonly tries: readonly Try[];
  readonly seen: readonly Seen[];
  readonly faults: readonly Fault[];
  /** Processes that ended although nobody killed them. */
  readonly crashes: readonly string[];
};

/** The words by which an intent is found in whatever it wrote. */
export function markerOf(intent: Pick<Intent, 'id'>): string {
  return `#${intent.id}#`;
}

/** Whether an answer says that the intent was done. */
export function isSuccess(end: Try['end']): end is Answered {
  return end.kind === 'answered' && end.status >= 200 && end.status < 300;
}

/** 4xx that say "not now": the same request may be sent again and end otherwise. */
const notNow: ReadonlySet<string | undefined> = new Set([
  'request_in_progress',
  'insufficient_credits',
  'rate_limited',
]);

/** Whether an answer says that the intent will never be done. */
export function isRefusal(end: Try['end']): end is Answered {
  return end.kind === 'answered' && end.status >= 400 && end.status < 500 && !notNow.has(end.code);
}

/** Whether the answer is kept by the server under the key: a success, or a refusal that was paid for. */
export function isStored(end: Try['end']): end is Answered {
  return end.kind === 'answered' && end.replayed !== undefined;
}
