import * as v from 'valibot';
import { codePoints, hasForbiddenText } from './text.ts';

/** Text whose length counts Unicode code points and which holds neither U+0000 nor lone surrogates. */
export function text(minLength: number, maxLength: number) {
  return v.pipe(
    v.string(),
    v.check((value) => hasForbiddenText(value) === undefined, 'must not contain U+0000 or lone surrogates'),
    v.check((value) => codePoints(value) >= minLength, `must have at least ${minLength} characters`),
    v.check((value) => codePoints(value) <= maxLength, `must have at most ${maxLength} characters`),
    v.metadata({ minLength, maxLength }),
  );
}

/** A whole number in a range, both ends included. */
export function integer(min: number, max: number) {
  return v.pipe(v.number(), v.integer(), v.minValue(min), v.maxValue(max));
}

/** A whole number that the server counted. */
const whole = v.pipe(v.number(), v.integer());

/** RFC 3339, UTC, milliseconds. */
export const time = v.pipe(v.string(), v.isoTimestamp());

/** `?limit&after` of every list. `limit` arrives as text. */
export const listQuery = {
  limit: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[1-9][0-9]{0,2}$/, 'must be a whole number from 1 to 100'),
      v.metadata({ onTheWire: { type: 'integer', minimum: 1, maximum: 100 } }),
      v.transform(Number),
      v.maxValue(100, 'must be at most 100'),
    ),
    '20',
  ),
  after: v.optional(v.pipe(v.string(), v.maxLength(512))),
};

/** `{items, next}`; `next` is an opaque cursor or null. */
export function list<const S extends v.GenericSchema>(item: S) {
  return v.strictObject({ items: v.array(item), next: v.nullable(v.string()) });
}

/** An order as it is answered. */
export const order = v.strictObject({
  order_id: v.string(),
  cents: integer(1, 1_000_000_000),
  item: v.string(),
  created_at: time,
});

/** The body of `POST /v1/orders`; money in cents. */
export const orderInput = v.strictObject({ cents: integer(1, 1_000_000_000), item: text(1, 200) });

const jobStatus = v.picklist(['queued', 'running', 'succeeded', 'failed', 'cancelled', 'dead']);

/** What a model is asked in the background: what a delivery carries. */
export const jobPayload = v.strictObject({
  prompt: text(1, 1_000_000),
  max_tokens: v.optional(integer(1, 4_096), 512),
});

/** The body of `POST /v1/jobs`. */
export const jobInput = v.strictObject({ kind: v.literal('generate'), ...jobPayload.entries });

/** What was used, as the provider says, else counted. */
export const usage = v.strictObject({
  prompt_tokens: whole,
  completion_tokens: whole,
  /** Calls that were sent and whose outcome nobody knows. */
  unknown_attempts: whole,
});

/** A job as it is answered. */
export const job = v.strictObject({
  job_id: v.string(),
  kind: v.literal('generate'),
  status: jobStatus,
  /** Calls that were sent. */
  attempts: whole,
  max_attempts: whole,
  /** The text, once succeeded. */
  result: v.nullable(v.string()),
  error: v.nullable(v.strictObject({ code: v.string(), message: v.string() })),
  usage,
  cost_micros: whole,
  version: whole,
  etag: v.string(),
  created_at: time,
  updated_at: time,
});

/** `?limit&after&status` of `GET /v1/jobs`. */
export const jobListQuery = { ...listQuery, status: v.optional(jobStatus) };

/** `?after` of a job's events: the number behind which to go on; like `Last-Event-ID`, which wins if it is larger. */
export const eventsQuery = { after: v.optional(v.string()) };

/** The body of `POST /v1/credits`; money in micros (10^-6 of the currency). */
export const creditInput = v.strictObject({ amount_micros: integer(1, 1_000_000_000_000) });

/** A movement of credits: what leaves the balance is negative. */
export const ledgerEntry = v.strictObject({
  entry_id: v.string(),
  kind: v.picklist(['credit', 'hold', 'release', 'charge']),
  amount_micros: whole,
  source_type: v.picklist(['credit', 'job', 'rewrite']),
  source_id: v.string(),
  /** On a release, where there are any: calls that were sent and whose outcome nobody knows. */
  unknown_attempts: v.optional(integer(1, 2_147_483_647)),
  created_at: time,
});

/** A page of the ledger; `balance_micros` is the sum of all amounts, `held_micros` the holds not yet released. */
export const ledger = v.strictObject({
  balance_micros: whole,
  held_micros: whole,
  ...list(ledgerEntry).entries,
});

/** The syntax of a document's id, which a client may choose. */
export const docId = /^[A-Za-z0-9_-]{1,64}$/;

const docTitle = text(1, 200);
const docBody = text(0, 1_000_000);

/** A document as lists show it. */
export const docItem = v.strictObject({
  id: v.pipe(v.string(), v.regex(docId)),
  title: v.string(),
  version: integer(1, 2_147_483_647),
  etag: v.string(),
  created_at: time,
  updated_at: time,
  updated_by: v.string(),
});

/** A document as it is answered. */
export const doc = v.strictObject({ ...docItem.entries, body: v.string() });

/** What is written as a document. */
export const docInput = v.strictObject({ title: docTitle, body: docBody });

/** A merge patch of a document: the members that change. Neither can be removed. */
export const docPatch = v.strictObject({ title: v.optional(docTitle), body: v.optional(docBody) });

/** The body of `POST /v1/docs/{id}/rewrite`. */
export const rewriteInput = v.strictObject({ instruction: text(1, 10_000) });

/** What is known of a key; never the stored body. */
export const keyState = v.strictObject({
  key: v.string(),
  state: v.picklist(['in_progress', 'released', 'done', 'expired']),
  attempt: whole,
  created_at: time,
  expires_at: time,
  status: v.nullable(whole),
  location: v.nullable(v.string()),
});
