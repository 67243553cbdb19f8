import { sql } from 'drizzle-orm';
import { bigint, check, index, integer, pgTable, primaryKey, text, timestamp, unique, uuid } from 'drizzle-orm/pg-core';
import { bytea, textC } from './columns.ts';

export { buckets, idem } from './key-schema.ts';

const time = (name: string) => timestamp(name, { withTimezone: true, precision: 3 });

/** Orders; an order never changes. */
export const orders = pgTable(
  'orders',
  {
    tenant: textC('tenant').notNull(),
    /** UUIDv7 whose milliseconds are `created_at`, so that the primary key is the order of the list. */
    id: uuid('id').notNull(),
    cents: integer('cents').notNull(),
    item: text('item').notNull(),
    createdAt: time('created_at').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.tenant, t.id] }),
    check('orders_cents_positive', sql`${t.cents} between 1 and 1000000000`),
    check('orders_item_length', sql`char_length(${t.item}) between 1 and 200`),
  ],
);

/** Documents. A deleted one keeps its row without content, so that a new life goes on counting versions and no old tag matches it. */
export const docs = pgTable(
  'docs',
  {
    tenant: textC('tenant').notNull(),
    id: textC('id').notNull(),
    title: text('title').notNull(),
    body: text('body').notNull(),
    version: integer('version').notNull(),
    createdAt: time('created_at').notNull(),
    updatedAt: time('updated_at').notNull(),
    /** The `sub` of the token that wrote this version. */
    updatedBy: text('updated_by').notNull(),
    deletedAt: time('deleted_at'),
  },
  (t) => [
    primaryKey({ columns: [t.tenant, t.id] }),
    index('docs_newest').on(t.tenant, t.createdAt.desc(), t.id.desc()).where(sql`${t.deletedAt} is null`),
    check('docs_id_syntax', sql`${t.id} ~ '^[A-Za-z0-9_-]{1,64}$'`),
    check('docs_title_length', sql`char_length(${t.title}) <= 200`),
    check('docs_body_length', sql`char_length(${t.body}) <= 1000000`),
    check('docs_version_counts', sql`${t.version} >= 1`),
    check('docs_deleted_is_empty', sql`${t.deletedAt} is null or (${t.title} = '' and ${t.body} = '')`),
    check('docs_live_has_title', sql`${t.deletedAt} is not null or char_length(${t.title}) >= 1`),
  ],
);

const micros = (name: string) => bigint(name, { mode: 'number' });

/** What a tenant has: the sum of its ledger, and how much of what it once had is held now. */
export const balances = pgTable(
  'balances',
  {
    tenant: textC('tenant').primaryKey(),
    balanceMicros: micros('balance_micros').notNull(),
    heldMicros: micros('held_micros').notNull(),
  },
  (t) => [
    check('balances_never_negative', sql`${t.balanceMicros} >= 0 and ${t.heldMicros} >= 0`),
    // What JSON carries exactly.
    check('balances_exact_in_json', sql`${t.balanceMicros} + ${t.heldMicros} <= 9007199254740991`),
  ],
);

/** Every movement of credits, never changed. The unique key makes a second hold, release or charge for one source impossible. */
export const ledger = pgTable(
  'ledger',
  {
    tenant: textC('tenant').notNull(),
    /** UUIDv7 whose milliseconds are `created_at`, so that the primary key is the order of the list. */
    id: uuid('id').notNull(),
    kind: text('kind', { enum: ['credit', 'hold', 'release', 'charge'] }).notNull(),
    amountMicros: micros('amount_micros').notNull(),
    sourceType: text('source_type', { enum: ['credit', 'job', 'rewrite'] }).notNull(),
    sourceId: textC('source_id').notNull(),
    /** Of a release: calls that were sent and whose outcome nobody knows; they may have cost more than was charged. */
    unknownAttempts: integer('unknown_attempts').notNull().default(0),
    createdAt: time('created_at').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.tenant, t.id] }),
    unique('ledger_once_per_source').on(t.tenant, t.sourceType, t.sourceId, t.kind),
    check(
      'ledger_sign',
      sql`case ${t.kind} when 'credit' then ${t.amountMicros} > 0 when 'release' then ${t.amountMicros} >= 0 when 'hold' then ${t.amountMicros} <= 0 when 'charge' then ${t.amountMicros} < 0 else false end`,
    ),
    check(
      'ledger_source_known',
      sql`(${t.kind} = 'credit') = (${t.sourceType} = 'credit') and ${t.sourceType} in ('credit', 'job', 'rewrite')`,
    ),
    check(
      'ledger_unknown_attempts_count',
      sql`${t.unknownAttempts} >= 0 and (${t.kind} = 'release' or ${t.unknownAttempts} = 0)`,
    ),
  ],
);

/** Holds that are open: gone once released. A job's ends with the job; a rewrite's has a time by which its owner is dead. */
export const holds = pgTable(
  'holds',
  {
    tenant: textC('tenant').notNull(),
    sourceType: text('source_type', { enum: ['job', 'rewrite'] }).notNull(),
    sourceId: textC('source_id').notNull(),
    amountMicros: micros('amount_micros').notNull(),
    /** The idempotency key of the request that holds: a later owner of the key releases what an earlier one left. */
    requestKey: textC('request_key'),
    /** Null: no time of its own, the source's end releases it. */
    expiresAt: timestamp('expires_at', { withTimezone: true }),
  },
  (t) => [
    primaryKey({ columns: [t.tenant, t.sourceType, t.sourceId] }),
    index('holds_expiry').on(t.expiresAt).where(sql`${t.expiresAt} is not null`),
    index('holds_request').on(t.tenant, t.requestKey).where(sql`${t.requestKey} is not null`),
    check('holds_not_negative', sql`${t.amountMicros} >= 0`),
  ],
);

/** Model calls that run in the background; `resources/jobs/transitions.ts` draws their states. */
export const jobs = pgTable(
  'jobs',
  {
    tenant: textC('tenant').notNull(),
    /** UUIDv7 whose milliseconds are `created_at`, so that the primary key is the order of the list. */
    id: uuid('id').notNull(),
    kind: text('kind', { enum: ['generate'] }).notNull(),
    prompt: text('prompt').notNull(),
    /** What the prompt counts for where the provider does not say. */
    promptEstimate: integer('prompt_estimate').notNull(),
    maxTokens: integer('max_tokens').notNull(),
    /** What a token cost when the job was accepted: hold and charge are counted alike. */
    priceMicros: integer('price_micros').notNull(),
    holdMicros: micros('hold_micros').notNull(),
    status: text('status', { enum: ['queued', 'running', 'succeeded', 'failed', 'cancelled', 'dead'] }).notNull(),
    /** Counts every change that a client can see. */
    version: integer('version').notNull(),
    /** Calls that were sent. */
    attempts: integer('attempts').notNull(),
    /** Claims that count towards `max_attempts`: all but those that were handed back. */
    tries: integer('tries').notNull(),
    maxAttempts: integer('max_attempts').notNull(),
    /** A queued job is not claimed before this. */
    runAt: timestamp('run_at', { withTimezone: true }).notNull(),
    /** The fencing token of the worker that runs it: random, new with every claim, compared by every write of the worker. */
    fencingToken: uuid('fencing_token'),
    leaseUntil: timestamp('lease_until', { withTimezone: true }),
    /** The number of its last event. */
    lastSeq: integer('last_seq').notNull(),
    /** Tokens of the running attempt that are in events: what is known to be used if its worker dies now. */
    attemptTokens: integer('attempt_tokens').notNull(),
    /** The text as JSON, so that it may hold U+0000 and lone surrogates. */
    result: text('result'),
    errorCode: text('error_code'),
    errorMessage: text('error_message'),
    promptTokens: integer('prompt_tokens').notNull(),
    completionTokens: integer('completion_tokens').notNull(),
    unknownAttempts: integer('unknown_attempts').notNull(),
    costMicros: micros('cost_micros').notNull(),
    /** `sha256(tenant, kind, payload)` of what came without a client's key. */
    deliveryDigest: bytea('delivery_digest'),
    /** W3C trace context of the request, for the provider. */
    traceparent: text('traceparent'),
    createdAt: time('created_at').notNull(),
    updatedAt: time('updated_at').notNull(),
    endedAt: time('ended_at'),
    /** Prompt, result and events are past their retention and gone. */
    textsDeletedAt: time('texts_deleted_at'),
  },
  (t) => [
    primaryKey({ columns: [t.tenant, t.id] }),
    unique('jobs_once_per_delivery').on(t.tenant, t.deliveryDigest),
    index('jobs_queued').on(t.runAt).where(sql`${t.status} = 'queued'`),
    index('jobs_leases').on(t.leaseUntil).where(sql`${t.status} = 'running'`),
    index('jobs_retention').on(t.endedAt).where(sql`${t.endedAt} is not null and ${t.textsDeletedAt} is null`),
    index('jobs_by_status').on(t.tenant, t.status, t.id),
    check('jobs_status_known', sql`${t.status} in ('queued', 'running', 'succeeded', 'failed', 'cancelled', 'dead')`),
    check(
      'jobs_running_has_owner',
      sql`(${t.status} = 'running') = (${t.fencingToken} is not null) and (${t.status} = 'running') = (${t.leaseUntil} is not null)`,
    ),
    check('jobs_ended_has_time', sql`(${t.status} in ('queued', 'running')) = (${t.endedAt} is null)`),
    check(
      'jobs_succeeded_has_result',
      sql`(${t.status} = 'succeeded' and ${t.textsDeletedAt} is null) = (${t.result} is not null)`,
    ),
    check(
      'jobs_failed_has_error',
      sql`(${t.status} in ('failed', 'dead')) = (${t.errorCode} is not null) and (${t.errorCode} is null) = (${t.errorMessage} is null)`,
    ),
    check('jobs_cost_within_hold', sql`${t.costMicros} between 0 and ${t.holdMicros}`),
    check(
      'jobs_counts',
      sql`least(${t.attempts}, ${t.tries}, ${t.attemptTokens}, ${t.promptTokens}, ${t.completionTokens}, ${t.unknownAttempts}, ${t.priceMicros}) >= 0 and least(${t.version}, ${t.maxAttempts}, ${t.maxTokens}, ${t.lastSeq}) >= 1`,
    ),
  ],
);

/** What a job's stream tells, in the bytes that every reader gets. Numbered from 1 without gaps. */
export const jobEvents = pgTable(
  'job_events',
  {
    tenant: textC('tenant').notNull(),
    jobId: uuid('job_id').notNull(),
    seq: integer('seq').notNull(),
    event: text('event', { enum: ['status', 'delta', 'reset', 'done', 'error', 'cancelled'] }).notNull(),
    /** One line of JSON. */
    data: text('data').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.tenant, t.jobId, t.seq] }),
    check('job_events_known', sql`${t.event} in ('status', 'delta', 'reset', 'done', 'error', 'cancelled')`),
    check('job_events_numbered', sql`${t.seq} >= 1`),
  ],
);
