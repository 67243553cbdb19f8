/** May sending the same request again help? `wait`: yes, after Retry-After. `maybe`: yes, with back-off. `no`: not unchanged. */
type Retry = 'no' | 'wait' | 'maybe';

/** What to do with the idempotency key after the error: send it again, make a new one, or look at the resource first. */
export type KeyAction = 'reuse' | 'rotate' | 'reconcile';

type Entry = {
  readonly status: number;
  /** When it happens: one sentence for the reference page. */
  readonly when: string;
  /** What the caller should do: the default `message` of the answer. */
  readonly message: string;
  readonly retry: Retry;
  readonly keyAction?: KeyAction;
};

/** The closed table of error codes: the server throws by code, clients switch on it, the docs are generated from it. */
export const errorCodes = {
  bad_request: {
    status: 400,
    when: 'The bytes are no HTTP/1.1 request.',
    message: 'Send a well-formed HTTP/1.1 request.',
    retry: 'no',
  },
  idempotency_key_required: {
    status: 400,
    when: 'A POST came without `Idempotency-Key`.',
    message: 'Send an Idempotency-Key header: make it once per intent and repeat it on every retry.',
    retry: 'no',
  },
  idempotency_key_invalid: {
    status: 400,
    when: 'The key is not 1 to 255 visible ASCII characters, or there is more than one.',
    message: 'Send exactly one Idempotency-Key of 1 to 255 visible ASCII characters.',
    retry: 'no',
  },
  precondition_invalid: {
    status: 400,
    when: '`If-Match` or `If-None-Match` of a write is not a list of entity tags or `*`, or cannot be used here.',
    message: 'Send If-Match or If-None-Match as a list of quoted entity tags, or as *.',
    retry: 'no',
  },
  invalid_json: {
    status: 400,
    when: 'The body is not JSON that can be read in exactly one way (RFC 8259, no duplicate members, no unsafe integers).',
    message: 'Send a body of valid JSON in UTF-8.',
    retry: 'no',
  },
  invalid_query: {
    status: 400,
    when: 'A query parameter is not of its form.',
    message: 'Correct the query parameters.',
    retry: 'no',
  },
  invalid_cursor: {
    status: 400,
    when: 'A cursor was not made by this list for this tenant, or lies beyond the last event.',
    message: 'Start again without the cursor, or use the one from the last answer.',
    retry: 'no',
  },
  unexpected_body: {
    status: 400,
    when: 'A request without a body of its own (GET, DELETE, a cancellation) came with one.',
    message: 'Send this request without a body.',
    retry: 'no',
  },
  unauthenticated: {
    status: 401,
    when: 'The bearer token is missing, expired, not yet valid, wrongly signed, or lacks a claim.',
    message: 'Send a valid bearer token in the Authorization header.',
    retry: 'no',
  },
  insufficient_credits: {
    status: 402,
    when: 'The balance does not cover the hold for this model call.',
    message: 'Add credits, or ask for fewer tokens.',
    retry: 'no',
  },
  forbidden: {
    status: 403,
    when: 'The token lacks the scope that the route asks for.',
    message: 'Use a token with the scope this route needs.',
    retry: 'no',
  },
  not_found: {
    status: 404,
    when: 'There is no such route, document, order, job or key for this tenant.',
    message: 'Check the address: there is nothing here for this tenant.',
    retry: 'no',
  },
  method_not_allowed: {
    status: 405,
    when: 'The path exists, the method does not. `Allow` lists those that do.',
    message: 'Use one of the methods in the Allow header.',
    retry: 'no',
  },
  request_timeout: {
    status: 408,
    when: 'Head or body did not arrive in time.',
    message: 'Send the whole request without stalling.',
    retry: 'maybe',
  },
  idempotency_key_reused: {
    status: 409,
    when: 'The key is bound to another request; `differs` lists the parts that differ.',
    message: 'This key belongs to another request: use a new key for a new intent.',
    retry: 'no',
    keyAction: 'rotate',
  },
  request_in_progress: {
    status: 409,
    when: 'The first request with this key is still running.',
    message: 'The first request with this key is still running: send it again after Retry-After.',
    retry: 'wait',
  },
  idempotency_key_expired: {
    status: 409,
    when: 'The stored answer of this key is past its retention; nothing was run.',
    message: 'The answer of this key is no longer kept: look at the resource before you send it under a new key.',
    retry: 'no',
    keyAction: 'reconcile',
  },
  events_deleted: {
    status: 410,
    when: 'The events of the job are past their retention.',
    message: 'The events are no longer kept: read the job itself.',
    retry: 'no',
  },
  precondition_failed: {
    status: 412,
    when: 'The resource is at another version than `If-Match` names, or exists although `If-None-Match: *` was sent.',
    message: 'The resource has changed: apply your change to the version in ETag and send that tag.',
    retry: 'no',
  },
  body_too_large: {
    status: 413,
    when: 'The body is larger than the limit.',
    message: 'Send a smaller body.',
    retry: 'no',
  },
  unsupported_media_type: {
    status: 415,
    when: 'Content-Type is missing, is not the one the route takes, names another charset than UTF-8, or the body is encoded.',
    message: 'Send the body in the media type of this route, in UTF-8 and without Content-Encoding.',
    retry: 'no',
  },
  expectation_failed: {
    status: 417,
    when: 'The Expect header asks for something other than 100-continue.',
    message: 'Send no Expect header but 100-continue.',
    retry: 'no',
  },
  invalid_body: {
    status: 422,
    when: 'The JSON is well-formed but not of the shape of this route; `issues` lists where.',
    message: 'Correct the members listed in issues; the key is still free.',
    retry: 'no',
  },
  precondition_required: {
    status: 428,
    when: 'A write to a shared document came without `If-Match`.',
    message: 'Send If-Match with the tag you read, or * to overwrite whatever is there.',
    retry: 'no',
  },
  rate_limited: {
    status: 429,
    when: 'The tenant has used up its budget of requests on the routes that spend.',
    message: 'Send it again after Retry-After.',
    retry: 'wait',
  },
  headers_too_large: {
    status: 431,
    when: 'The head of the request is larger than the limit.',
    message: 'Send a smaller head.',
    retry: 'no',
  },
  internal: {
    status: 500,
    when: 'A fault of the server. The log holds its cause under the trace id.',
    message: 'Something went wrong here; the same request may be sent again with the same key.',
    retry: 'maybe',
  },
  upstream_failed: {
    status: 502,
    when: 'The model provider refused or broke the call.',
    message: 'The model call failed: send it again with the same key.',
    retry: 'maybe',
  },
  unavailable: {
    status: 503,
    when: 'The database is away, or the server is overloaded or stopping.',
    message: 'Send it again after Retry-After with the same key.',
    retry: 'wait',
  },
  upstream_busy: {
    status: 503,
    when: 'The model provider asks to wait.',
    message: 'The model provider is busy: send it again after Retry-After with the same key.',
    retry: 'wait',
  },
  upstream_timeout: {
    status: 504,
    when: 'The model provider did not answer in time.',
    message: 'The model did not answer in time: send it again with the same key.',
    retry: 'maybe',
  },
} as const satisfies Record<string, Entry>;

/** One of the closed set of codes. */
export type ErrorCode = keyof typeof errorCodes;

/** The table entry of a code, widened. */
export function errorEntry(code: ErrorCode): Entry {
  return errorCodes[code];
}

/** What `key_action` says for a code unless the thrower knows better. */
export function keyActionOf(code: ErrorCode): KeyAction {
  return errorEntry(code).keyAction ?? 'reuse';
}

/** Statuses that OpenAI-, Anthropic- and Stainless-style SDKs retry by themselves. */
export function isRetriedBySdks(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || status >= 500;
}

/** What a thrower can add to an error's table entry. */
export type ProblemOptions = {
  /** Replaces the table's sentence. */
  message?: string;
  /** Extra members of the body: `issues`, `differs`, `current_etag` … */
  members?: Record<string, unknown>;
  headers?: Record<string, string>;
  /** Milliseconds until a retry may help; makes Retry-After and retry-after-ms. */
  retryAfterMs?: number;
  /** False where a retry cannot help although the table says it may. */
  shouldRetry?: boolean;
  keyAction?: KeyAction;
  /** For the log alone. */
  cause?: unknown;
};

/** The typed error of the whole server: thrown by code, turned into `application/problem+json` in one place. */
export class Problem extends Error {
  override readonly name = 'Problem';
  readonly code: ErrorCode;
  readonly status: number;
  readonly options: ProblemOptions;

  constructor(code: ErrorCode, options: ProblemOptions = {}) {
    super(options.message ?? errorEntry(code).message, { cause: options.cause });
    this.code = code;
    this.status = errorEntry(code).status;
    this.options = options;
  }
}

/** Shorthand for `new Problem`. */
export function problem(code: ErrorCode, options?: ProblemOptions): Problem {
  return new Problem(code, options);
}
