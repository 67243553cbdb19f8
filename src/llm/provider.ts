import type { ErrorCode } from '../protocol/errors.ts';

/** One call to a model: what is asked, and what the caller keeps in its hand while it runs. */
export type ModelCall = {
  readonly prompt: string;
  /** The answer ends with `finish: 'length'` when it would be longer. */
  readonly maxTokens: number;
  /** Ends the call at once and frees its socket. Of this call alone: a shared signal collects listeners. */
  readonly signal: AbortSignal;
  /** Goes to the provider as `Idempotency-Key`; the same for every try of one step (`deriveCallKey`). */
  readonly idempotencyKey: string;
  /** W3C trace context, handed on as it is. */
  readonly traceparent?: string;
  /** Left to the provider when absent. At 0 an answer may come from the cache. */
  readonly temperature?: number;
  /** Who may share a cached answer: the tenant. Without it the call goes past the cache. */
  readonly cacheScope?: string;
  /** Told once when the request leaves this process: from here on the call counts as an attempt and may be paid. */
  readonly onSent?: () => void;
};

/** Tokens as the provider counts them. */
export type Usage = { readonly promptTokens: number; readonly completionTokens: number };

/** How an answer ended: by itself, or at `maxTokens`. Both are answers. */
export type Finish = 'stop' | 'length';

/**
 * What a call yields, in order: texts, then exactly one `end`.
 * A text may hold U+0000, lone surrogates or half of a surrogate pair: only the concatenation means something.
 * An empty text is a sign of life (a model that reasons in silence). `tokens` says how many tokens it holds; 1 when absent.
 */
export type Piece =
  | { readonly kind: 'text'; readonly text: string; readonly tokens?: number }
  | { readonly kind: 'end'; readonly finish: Finish; readonly usage?: Usage; readonly cached?: true };

/**
 * The seam to a language model.
 * `generate` yields `end` only for an answer that ended properly; throws `ModelError` for trouble of the provider, and the
 * signal's reason when the signal fired. Leaving the loop early frees everything, too. It has no time-out of its own: `runModel` has.
 */
export type Provider = {
  /** Says which model answers, so that answers of two are never taken for one another. */
  readonly name: string;
  generate(call: ModelCall): AsyncIterable<Piece>;
};

/** What to do after a failed call. `unknown`: sent, and no proper answer came. It may be sent again, and it may have been paid. */
export type FailureKind = 'retryable' | 'final' | 'unknown';

/** The codes a failed call ends in: those of the error table, so that they can be shown as they are. */
export type ModelErrorCode = Extract<ErrorCode, `upstream_${string}`>;

type ModelErrorParts = {
  readonly kind: FailureKind;
  readonly code: ModelErrorCode;
  readonly message: string;
  readonly status?: number | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly detail?: string | undefined;
  readonly cause?: unknown;
};

/** A call that the provider failed. `message` may be shown to anybody. */
export class ModelError extends Error {
  override readonly name = 'ModelError';
  readonly kind: FailureKind;
  readonly code: ModelErrorCode;
  /** The provider's HTTP status, where it gave one. */
  readonly status: number | undefined;
  /** How long the provider asks to wait, 0 to 60,000 ms. */
  readonly retryAfterMs: number | undefined;
  /** The provider's own words, bounded, without the API key: for the log, not for a tenant. */
  readonly detail: string | undefined;

  constructor({ kind, code, message, status, retryAfterMs, detail, cause }: ModelErrorParts) {
    super(message, cause === undefined ? undefined : { cause });
    this.kind = kind;
    this.code = code;
    this.status = status;
    this.retryAfterMs = retryAfterMs;
    this.detail = detail;
  }

  /** May the same call help when it is sent again? */
  get mayRetry(): boolean {
    return this.kind !== 'final';
  }

  /** Is it open whether the call was executed, and paid? */
  get outcomeUnknown(): boolean {
    return this.kind === 'unknown';
  }
}
