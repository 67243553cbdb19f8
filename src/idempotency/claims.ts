import type postgres from 'postgres';
import { textArray } from '../db/arrays.ts';
import { keyTable } from '../db/key-table.ts';
import type { KeyHome, Queries } from '../db/pool.ts';

/*
 * The life of a key (table idem, primary key (tenant, key)):
 *
 *            claim                     complete (token matches)
 *  (none) ───────────► in_progress ───────────────────────────► done ── ttl ──► expired ── tombstone ──► (none)
 *    ▲                  │       ▲                                              (body gone)
 *    │ abandon          │       │ takeOver: attempt + 1, new fencing token
 *    └──────────────────┤       │
 *       refused (4xx)   └───────┘
 *                      lease run out, or released (5xx)
 *
 * Only the database's clock is read. Every transition is one statement whose WHERE holds the fencing token it is about,
 * and none of them waits for a row that a transaction has locked: a duplicate is told at once.
 */

/** How long things last, in milliseconds. */
export type IdempotencySettings = {
  readonly leaseMs: number;
  readonly ttlMs: number;
  readonly tombstoneMs: number;
};

/** A claim that is ours until somebody takes it over. */
export type Claim = {
  readonly tenant: string;
  readonly key: string;
  readonly fencingToken: string;
};

/** A stored answer: what is replayed. A null body is an answer without one. */
export type StoredAnswer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | null;
};

/** What is known of a key that is held by a row. `released`: nobody owns it, but it is bound to its request. */
export type KeyRow = {
  readonly phase: 'in_progress' | 'released' | 'done' | 'expired';
  readonly fingerprint: Uint8Array;
  readonly fencingToken: string;
  readonly attempt: number;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  /** Until the lease runs out; zero or less when it has. */
  readonly leaseLeftMs: number;
  readonly answer: StoredAnswer | undefined;
};

/** What a claim's owner learns. `now` is the database's clock. */
export type Owned = {
  readonly attempt: number;
  readonly now: Date;
  readonly createdAt: Date;
  readonly expiresAt: Date;
};

/** A request for a key. `durable`: flush the claim to disk before answering (something is paid for next). */
export type ClaimRequest = Claim & { readonly fingerprint: Uint8Array; readonly durable: boolean };

/** One claim's outcome. `lost`: a row was in the way and is gone or not visible yet: claim again. */
export type ClaimOutcome =
  | { readonly kind: 'claimed'; readonly owned: Owned }
  | { readonly kind: 'held'; readonly row: KeyRow }
  | { readonly kind: 'gone' | 'lost' };

type RawRow = {
  phase: KeyRow['phase'] | 'gone';
  fingerprint: Uint8Array;
  fencing_token: string;
  attempt: number;
  created_at: Date;
  expires_at: Date;
  lease_left_ms: number;
  status: number | null;
  headers: string | null;
  body: Uint8Array | null;
};

/** The columns of a row `i` as a KeyRow; the one place that says what the clock makes of a row, swept or not. */
function keyColumns(sql: postgres.Sql, settings: IdempotencySettings) {
  return sql`
    case
      when i.state = 'in_progress' and i.lease_until > now() then 'in_progress'
      when i.expires_at + ${settings.tombstoneMs}::float8 * interval '1 millisecond' <= now() then 'gone'
      when i.state = 'expired' or i.expires_at <= now() then 'expired'
      when i.state = 'done' then 'done'
      else 'released'
    end as phase,
    i.fingerprint, i.fencing_token, i.attempt, i.created_at, i.expires_at,
    (extract(epoch from i.lease_until - now()) * 1000)::float8 as lease_left_ms,
    i.status, i.headers, i.body`;
}

function keyRow(raw: RawRow): KeyRow | undefined {
  if (raw.phase === 'gone') return undefined;
  return {
    phase: raw.phase,
    fingerprint: raw.fingerprint,
    fencingToken: raw.fencing_token,
    attempt: raw.attempt,
    createdAt: raw.created_at,
    expiresAt: raw.expires_at,
    leaseLeftMs: raw.lease_left_ms,
    answer:
      raw.phase === 'done' && raw.status !== null
        ? { status: raw.status, headers: JSON.parse(raw.headers ?? '{}') as Record<string, string>, body: raw.body }
        : undefined,
  };
}

/** Looks a key up without touching it. Undefined: the key is free. */
export async function lookUp(
  db: Queries,
  settings: IdempotencySettings,
  tenant: string,
  key: string,
): Promise<KeyRow | undefined> {
  const rows = await db.query(
    (sql) => sql<RawRow[]>`
      select ${keyColumns(sql, settings)} from ${keyTable(sql, db, 'idem')} i
      where i.tenant = ${tenant} and i.key = ${key}`,
  );
  return rows[0] === undefined ? undefined : keyRow(rows[0]);
}

/**
 * Claims keys, many requests in one statement, committed at once; outcomes are in the order of the requests.
 *
 * The plain read before the INSERT matters: `on conflict do nothing` alone would wait for a transaction that is just
 * completing the key. Rows are inserted in key order, so that two batches cannot deadlock.
 * `offset 0` keeps each look-up one of its own, by the primary key: as a join its plan, made once while the table was small,
 * would read the whole table for ever after.
 * A claim of database work need not be flushed by itself: the completion comes later in the write-ahead log and carries it.
 */
export async function claimBatch(
  db: Queries,
  settings: IdempotencySettings,
  requests: readonly ClaimRequest[],
): Promise<ClaimOutcome[]> {
  const durable = requests.some((request) => request.durable);
  const rows = await db.query(
    (sql) => sql<(Partial<RawRow> & { claimed: boolean; now: Date; created_at: Date; expires_at: Date })[]>`
      with settings as materialized (
        select set_config('synchronous_commit',
          case when ${durable} then current_setting('synchronous_commit') else 'off' end, true)
      ), wanted as (
        select * from unnest(
          ${textArray(requests.map((r) => r.tenant))}::text[],
          ${textArray(requests.map((r) => r.key))}::text[],
          ${textArray(requests.map((r) => r.fencingToken))}::uuid[],
          ${textArray(requests.map((r) => Buffer.from(r.fingerprint).toString('hex')))}::text[]
        ) with ordinality as w(tenant, key, fencing_token, fingerprint, n)
      ), inserted as (
        insert into ${keyTable(sql, db, 'idem')}
          (tenant, key, fencing_token, fingerprint, state, attempt, lease_until, created_at, expires_at, sweep_at)
        select w.tenant, w.key, w.fencing_token, decode(w.fingerprint, 'hex'), 'in_progress', 1,
          now() + ${settings.leaseMs}::float8 * interval '1 millisecond', now(),
          now() + ${settings.ttlMs}::float8 * interval '1 millisecond',
          now() + ${settings.ttlMs}::float8 * interval '1 millisecond'
        from wanted w, settings
        where not exists (
          select 1 from ${keyTable(sql, db, 'idem')} i
          where i.tenant = w.tenant collate "C" and i.key = w.key collate "C" offset 0)
        order by w.tenant collate "C", w.key collate "C"
        on conflict do nothing
        returning fencing_token, created_at, expires_at
      )
      select inserted.fencing_token is not null as claimed, now() as now,
        inserted.created_at as claimed_at, inserted.expires_at as claimed_until, held.*
      from wanted w
      left join inserted on inserted.fencing_token = w.fencing_token
      left join lateral (
        select ${keyColumns(sql, settings)}
        from ${keyTable(sql, db, 'idem')} i
        where i.tenant = w.tenant collate "C" and i.key = w.key collate "C" offset 0
      ) held on true
      order by w.n`,
  );
  return rows.map((row): ClaimOutcome => {
    if (row.claimed) {
      const { claimed_at, claimed_until } = row as unknown as { claimed_at: Date; claimed_until: Date };
      return { kind: 'claimed', owned: { attempt: 1, now: row.now, createdAt: claimed_at, expiresAt: claimed_until } };
    }
    if (row.phase === undefined || row.phase === null) return { kind: 'lost' };
    const held = keyRow(row as RawRow);
    return held === undefined ? { kind: 'gone' } : { kind: 'held', row: held };
  });
}

/**
 * Takes over a key whose owner released it or let its lease run out. Undefined: somebody else was faster, or its owner is
 * just committing (`skip locked`: that is not waited for).
 */
export async function takeOver(
  db: Queries,
  settings: IdempotencySettings,
  claim: Claim,
  previousToken: string,
): Promise<Owned | undefined> {
  const rows = await db.query(
    (sql) => sql<{ attempt: number; now: Date; created_at: Date; expires_at: Date }[]>`
      with free as (
        select i.tenant, i.key from ${keyTable(sql, db, 'idem')} i
        where i.tenant = ${claim.tenant} and i.key = ${claim.key} and i.state = 'in_progress'
          and i.fencing_token = ${previousToken} and i.lease_until <= clock_timestamp()
        for update skip locked
      )
      update ${keyTable(sql, db, 'idem')} set fencing_token = ${claim.fencingToken}, attempt = attempt + 1,
        lease_until = clock_timestamp() + ${settings.leaseMs}::float8 * interval '1 millisecond'
      from free where idem.tenant = free.tenant and idem.key = free.key
      returning idem.attempt, now() as now, idem.created_at, idem.expires_at`,
  );
  const row = rows[0];
  return row && { attempt: row.attempt, now: row.now, createdAt: row.created_at, expiresAt: row.expires_at };
}

/** Removes a row whose tombstone has run out before the sweep came by, so that the key can be claimed afresh. */
export async function removeGone(
  db: Queries,
  settings: IdempotencySettings,
  tenant: string,
  key: string,
): Promise<void> {
  await db.query(
    (sql) => sql`
      with free as (
        select i.tenant, i.key from ${keyTable(sql, db, 'idem')} i
        where i.tenant = ${tenant} and i.key = ${key}
          and i.expires_at + ${settings.tombstoneMs}::float8 * interval '1 millisecond' <= now()
          and not (i.state = 'in_progress' and i.lease_until > now())
        for update skip locked
      )
      delete from ${keyTable(sql, db, 'idem')} using free where idem.tenant = free.tenant and idem.key = free.key`,
  );
}

/**
 * Stores the answer on the given transaction if the claim is still ours. False: it is not, and the caller must roll back.
 * The fence is here: `fencing_token` in the WHERE.
 */
export async function complete(
  sql: postgres.Sql,
  claim: Claim,
  answer: StoredAnswer,
  db: KeyHome = {},
): Promise<boolean> {
  const rows = await sql`${completion(sql, claim, answer, db)}`;
  return rows.length === 1;
}

/** Completion and work as one statement; `work` inserts only what it selects from `fence`. False: the claim is not ours. */
export async function completeWith(
  db: Queries,
  claim: Claim,
  answer: StoredAnswer,
  work: (sql: postgres.Sql) => postgres.PendingQuery<postgres.Row[]>,
): Promise<boolean> {
  const rows = await db.query(
    (sql) => sql<{ fenced: number }[]>`
      with fence as (${completion(sql, claim, answer, db)}), work as (${work(sql)})
      select fenced from fence`,
  );
  return rows.length === 1;
}

/** The statement that stores the answer; it answers a row only if the claim is still ours and `also` holds. */
export function completion(
  sql: postgres.Sql,
  claim: Claim,
  answer: StoredAnswer,
  db: KeyHome,
  also: postgres.PendingQuery<postgres.Row[]> = sql``,
) {
  return sql`
    update ${keyTable(sql, db, 'idem')} set state = 'done', status = ${answer.status}::smallint,
      headers = ${JSON.stringify(answer.headers)}, body = ${answer.body as Buffer | null}
    where tenant = ${claim.tenant} and key = ${claim.key} and fencing_token = ${claim.fencingToken}
      and state = 'in_progress' ${also}
    returning 1 as fenced`;
}

/** Gives the key back as if it had never been used (the request was refused). False: the claim is not ours any more. */
export async function abandon(db: Queries, claim: Claim): Promise<boolean> {
  const rows = await db.query(
    (sql) => sql`
      delete from ${keyTable(sql, db, 'idem')} where tenant = ${claim.tenant} and key = ${claim.key}
        and fencing_token = ${claim.fencingToken} and state = 'in_progress'
      returning 1`,
  );
  return rows.length === 1;
}

/**
 * Lets leases run out now: the keys stay bound to their requests and can be taken over at once. Answers the fencing tokens of
 * those it reached: a row that a transaction holds is passed over.
 */
export async function release(db: Queries, claims: readonly Claim[]): Promise<Set<string>> {
  const rows = await db.query(
    (sql) => sql<{ fencing_token: string }[]>`
      with wanted as (${claimRows(sql, claims)}), free as (${lockedByNobody(sql, db)})
      update ${keyTable(sql, db, 'idem')} set lease_until = clock_timestamp() from free
      where idem.tenant = free.tenant and idem.key = free.key
      returning idem.fencing_token`,
  );
  return new Set(rows.map((row) => row.fencing_token));
}

/**
 * Renews the leases of claims that are still ours and answers their fencing tokens. A row in the middle of its commit
 * is still ours and needs no renewal: it is passed over, not waited for.
 */
export async function renew(db: Queries, leaseMs: number, claims: readonly Claim[]): Promise<Set<string>> {
  const rows = await db.query(
    (sql) => sql<{ fencing_token: string }[]>`
      with wanted as (${claimRows(sql, claims)}), free as (${lockedByNobody(sql, db)}), renewed as (
        update ${keyTable(sql, db, 'idem')} set lease_until = clock_timestamp() + ${leaseMs}::float8 * interval '1 millisecond' from free
        where idem.tenant = free.tenant and idem.key = free.key
      )
      select i.fencing_token from ${keyTable(sql, db, 'idem')} i, wanted w
      where i.tenant = w.tenant and i.key = w.key and i.fencing_token = w.fencing_token`,
  );
  return new Set(rows.map((row) => row.fencing_token));
}

function claimRows(sql: postgres.Sql, claims: readonly Claim[]) {
  return sql`
    select w.tenant collate "C" as tenant, w.key collate "C" as key, w.fencing_token
    from unnest(
      ${textArray(claims.map((c) => c.tenant))}::text[],
      ${textArray(claims.map((c) => c.key))}::text[],
      ${textArray(claims.map((c) => c.fencingToken))}::uuid[]
    ) as w(tenant, key, fencing_token)`;
}

/** In key order, so that two statements over the same rows lock them in the same order. */
function lockedByNobody(sql: postgres.Sql, db: KeyHome) {
  return sql`
    select i.tenant, i.key from ${keyTable(sql, db, 'idem')} i, wanted w
    where i.tenant = w.tenant and i.key = w.key and i.fencing_token = w.fencing_token and i.state = 'in_progress'
    order by i.tenant, i.key
    for update of i skip locked`;
}

/** Of the keys given, those that an owner still works on, as `tenant key`. */
export async function stillRunning(
  db: Queries,
  keys: readonly { tenant: string; key: string }[],
): Promise<Set<string>> {
  const rows = await db.query(
    (sql) => sql<{ name: string }[]>`
      select i.tenant || ' ' || i.key as name
      from unnest(${textArray(keys.map((k) => k.tenant))}::text[], ${textArray(keys.map((k) => k.key))}::text[])
        as w(tenant, key)
      join ${keyTable(sql, db, 'idem')} i on i.tenant = w.tenant collate "C" and i.key = w.key collate "C"
      where i.state = 'in_progress' and i.lease_until > now()`,
  );
  return new Set(rows.map((row) => row.name));
}
