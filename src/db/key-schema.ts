import { sql } from 'drizzle-orm';
import {
  check,
  doublePrecision,
  index,
  integer,
  pgTable,
  primaryKey,
  smallint,
  text,
  timestamp,
  uuid,
} from 'drizzle-orm/pg-core';
import { bytea, textC } from './columns.ts';

/*
 * The tables that the protocol of the key needs, whoever uses it. They have two sets of migrations: `migrations/`, with all
 * other tables of this server, and `key-migrations/`, for a schema of their own in somebody else's database.
 */

const time = (name: string) => timestamp(name, { withTimezone: true, precision: 3 });

/** One row per idempotency key; `idempotency/claims.ts` draws its states. The key's tenant comes first, as in every table. */
export const idem = pgTable(
  'idem',
  {
    tenant: textC('tenant').notNull(),
    key: textC('key').notNull(),
    /** What the key is bound to: `idempotency/fingerprint.ts`. */
    fingerprint: bytea('fingerprint').notNull(),
    state: text('state', { enum: ['in_progress', 'done', 'expired'] }).notNull(),
    /** The fencing token: random, new with every owner, compared for equality by whatever commits. */
    fencingToken: uuid('fencing_token').notNull(),
    /** How many owners the key has had. */
    attempt: integer('attempt').notNull(),
    leaseUntil: timestamp('lease_until', { withTimezone: true }).notNull(),
    createdAt: time('created_at').notNull(),
    expiresAt: time('expires_at').notNull(),
    /** When the sweep has something to do: at expiry, then at the end of the tombstone. */
    sweepAt: time('sweep_at').notNull(),
    status: smallint('status'),
    /** The stored headers as JSON text. */
    headers: text('headers'),
    /** The stored body's bytes; null for an answer without one. Not jsonb: it would rewrite them. */
    body: bytea('body'),
  },
  (t) => [
    primaryKey({ columns: [t.tenant, t.key] }),
    index('idem_sweep').on(t.sweepAt),
    check('idem_tenant_length', sql`octet_length(${t.tenant}) between 1 and 64`),
    check('idem_key_length', sql`octet_length(${t.key}) between 1 and 255`),
    check('idem_state_known', sql`${t.state} in ('in_progress', 'done', 'expired')`),
    check('idem_attempt_counts', sql`${t.attempt} >= 1`),
    check('idem_done_has_status', sql`${t.state} <> 'done' or ${t.status} is not null`),
    check('idem_only_done_has_body', sql`${t.state} = 'done' or ${t.body} is null`),
  ],
);

/** One token bucket per tenant: what the routes that spend may still take. */
export const buckets = pgTable(
  'buckets',
  {
    tenant: textC('tenant').primaryKey(),
    tokens: doublePrecision('tokens').notNull(),
    refilledAt: timestamp('refilled_at', { withTimezone: true }).notNull(),
  },
  (t) => [check('buckets_never_negative', sql`${t.tokens} >= 0`)],
);
