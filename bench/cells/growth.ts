import { createHash, randomInt, randomUUID } from 'node:crypto';
import type { Arm, Cell, CellOptions, Check, Measured, Metrics, Prepared } from '../cell.ts';
import type { LoadSize } from '../options.ts';
import { calibrate, fire, type Shot } from '../stage/fire.ts';
import { type Stage, tenant } from '../stage/stage.ts';
import { rateEstimateMs, rateRounds, roundMs, warmUpMs } from './sizes.ts';

/** Few enough that latencies are those of the work and not of a queue. */
const connections = 4;
/** Keys stored before the rounds. */
const sizes: Readonly<Record<LoadSize, readonly number[]>> = {
  smoke: [1_000, 2_000],
  quick: [10_000, 100_000],
  usual: [10_000, 100_000, 1_000_000],
  full: [10_000, 100_000, 1_000_000, 10_000_000],
};
/** Rows that are due at the start of every round: more than the sweep gets through. */
const due: Readonly<Record<LoadSize, number>> = { smoke: 500, quick: 20_000, usual: 30_000, full: 100_000 };
/** A round is shorter than that of a rate: what is due must last for it. */
const shorter = 0.5;
/** What a row takes of its page beside itself. */
const linePointerBytes = 4;
/** Rows a second that are filled in, for the estimate. */
const fillRate = 60_000;

const order = { cents: 3_000, item: 'pro-plan' };
const body = JSON.stringify(order);
/** Stored keys look as random as real ones, and can be computed. */
const storedKey = (n: number) => createHash('md5').update(String(n)).digest('hex');

/** Latency of a first run and of a replay over more and more stored keys, while the sweep runs. */
export const growth: Cell = {
  name: 'growth',
  title: 'latency of a first run and of a replay with 10^4 to 10^7 keys stored, while the sweep runs',
  isUsual: true,
  takes: [],
  variants(options) {
    const rounds = options.rounds ?? rateRounds[options.size];
    return sizes[options.size].map((stored) => ({
      cell: 'growth',
      settings: { stored, due: due[options.size], connections },
      rounds,
      takesTurns: true,
      // The sweep is driven by the benchmark, so that it runs in every round and in nothing else.
      env: { IDEMPOTENCY_SWEEP_MS: '86400000' },
      estimateMs: rateEstimateMs(options.size, 2, rounds) + (stored / fillRate) * 1_000,
      prepare: (stage) => prepare(stage, options, stored),
    }));
  },
};

async function prepare(stage: Stage, { size }: CellOptions, stored: number): Promise<Prepared> {
  await fillKeys(stage, stored);
  const bytesPerKey = await sizeOfKeys(stage);
  const toClaim = (): Shot => ({
    method: 'POST',
    path: '/v1/orders',
    headers: { 'Idempotency-Key': randomUUID() },
    body,
  });
  const toReplay = (): Shot => ({ ...toClaim(), headers: { 'Idempotency-Key': storedKey(randomInt(stored) + 1) } });
  let firstRuns = 0;
  let unexpected = 0;
  const count =
    (arm: string) =>
    <M extends Measured>(measured: M): M => {
      for (const [status, times] of Object.entries(measured.statuses)) {
        if (status !== '201') unexpected += times;
        else if (arm === 'first_run') firstRuns += times;
      }
      return measured;
    };
  const arms = (['first_run', 'replay'] as const).map((name): Arm => {
    const shot = name === 'replay' ? toReplay : toClaim;
    const volley = {
      url: stage.server.url,
      connections,
      headers: stage.headers,
      shot,
      expect: 201,
      signal: stage.signal,
    };
    let amount = 0;
    return {
      name,
      async warmUp() {
        amount = await calibrate(volley, warmUpMs[size], roundMs[size] * shorter, count(name));
      },
      before: () => fillDue(stage, due[size]),
      async run() {
        await stage.server.ask({ kind: 'sweep', on: true });
        const fired = count(name)(await fire({ ...volley, amount }));
        const { swept } = await stage.server.ask({ kind: 'sweep', on: false });
        const sweeping = {
          swept_rows: swept,
          swept_per_s: (swept * 1_000) / fired.wallMs,
          due_left: await countDue(stage),
        };
        return { ...fired, metrics: { ...fired.metrics, ...sweeping, ...bytesPerKey } };
      },
    };
  });
  return {
    arms,
    async check(): Promise<Check[]> {
      const [row] = await stage.database.sql<{ orders: number; done: number }[]>`
        select (select count(*) from orders where tenant = ${tenant})::int as orders,
          (select count(*) from idem where tenant = ${tenant} and state = 'done' and key !~ '^due-')::int as done`;
      // One order is the model of all stored keys.
      return [
        { name: 'answers other than 201', expected: 0, actual: unexpected },
        { name: 'orders = first runs', expected: firstRuns + 1, actual: row?.orders ?? 0 },
        { name: 'no stored key lost its answer', expected: stored + firstRuns + 1, actual: row?.done ?? 0 },
      ];
    },
  };
}

/** Copies one finished key: the rows are exactly what the server writes. Their times are spread over the last day. */
async function fillKeys(stage: Stage, stored: number): Promise<void> {
  const { sql } = stage.database;
  const first = await stage.call('POST /v1/orders', { headers: { 'Idempotency-Key': 'model' }, body: order });
  if (first.status !== 201) throw new Error(`an order was answered with ${first.status}: ${first.text}`);
  /** Rows a statement. */
  const batch = 250_000;
  for (let from = 1; from <= stored; from += batch) {
    stage.signal.throwIfAborted();
    await sql`
      insert into idem (tenant, key, fingerprint, state, fencing_token, attempt, lease_until, created_at, expires_at,
        sweep_at, status, headers, body)
      select i.tenant, md5(n::text), i.fingerprint, i.state, gen_random_uuid(), 1, i.lease_until,
        now() - age, now() - age + interval '25 hours', now() - age + interval '25 hours', i.status, i.headers, i.body
      from idem i, generate_series(${from}::int, ${Math.min(stored, from + batch - 1)}::int) n,
        lateral (select (n % 86400) * interval '1 second' as age) ages
      where i.tenant = ${tenant} and i.key = 'model'`;
  }
  await sql`vacuum (analyze) idem`;
  await sql`checkpoint`;
}

/**
 * What a stored key takes on disk, its index entries and the room that is left for its second version included; and what its
 * row without the answer takes at least, both in bytes; and the share of dead rows at which autovacuum comes.
 */
async function sizeOfKeys(stage: Stage): Promise<Metrics> {
  type Sizes = { key_bytes: number; tombstone_bytes: number; vacuum_scale_factor: number };
  const [row] = await stage.database.sql<Sizes[]>`
    with total as (select count(*) as keys from idem), one as (
      select pg_column_size(row(tenant, key, fingerprint, state, fencing_token, attempt, lease_until, created_at, expires_at,
        sweep_at, status)) + ${linePointerBytes} as bytes
      from idem where tenant = ${tenant} and key = ${storedKey(1)}
    )
    select (pg_total_relation_size('idem') / keys)::float8 as key_bytes,
      (one.bytes + pg_indexes_size('idem') / keys)::float8 as tombstone_bytes,
      (select option_value::float8 from pg_class, pg_options_to_table(reloptions)
        where oid = 'idem'::regclass and option_name = 'autovacuum_vacuum_scale_factor') as vacuum_scale_factor
    from total, one`;
  return row ?? {};
}

/** Tops up what the sweep has to do: half of it loses its answer, the other half (a month old) is deleted. */
async function fillDue(stage: Stage, wanted: number): Promise<void> {
  const missing = wanted - (await countDue(stage));
  if (missing <= 0) return;
  await stage.database.sql`
    insert into idem (tenant, key, fingerprint, state, fencing_token, attempt, lease_until, created_at, expires_at,
      sweep_at, status, headers, body)
    select i.tenant, 'due-' || gen_random_uuid(), i.fingerprint, 'done', gen_random_uuid(), 1, i.lease_until,
      ended - interval '1 day', ended, ended, i.status, i.headers, i.body
    from idem i, generate_series(1, ${missing}::int) n,
      lateral (select now() - interval '1 minute' - (n % 2) * interval '40 days' as ended) times
    where i.tenant = ${tenant} and i.key = 'model'`;
}

async function countDue(stage: Stage): Promise<number> {
  const [row] = await stage.database.sql<{ due: number }[]>`
    select count(*)::int as due from idem where sweep_at <= now()`;
  return row?.due ?? 0;
}
