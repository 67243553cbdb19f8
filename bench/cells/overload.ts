import { randomUUID } from 'node:crypto';
import type { Arm, Cell, CellOptions, Check, Measured, Prepared, Variant } from '../cell.ts';
import { calibrate, fire, type Shot } from '../stage/fire.ts';
import { flood } from '../stage/flood.ts';
import { type Stage, tenant } from '../stage/stage.ts';
import { rateEstimateMs, rateRounds, roundMs, warmUpMs } from './sizes.ts';

/** How many times what the server sustains is offered. */
const times = 2;
/** A client gives up after this. Milliseconds. */
const patienceMs = 10_000;
/** A flood is twice as long as a round of a rate, so that a queue has time to grow. */
const longer = 2;

/** Orders at twice the rate that the server sustains. */
export const overload: Cell = {
  name: 'overload',
  title: 'what is left of the goodput when twice as much is asked for as the server sustains',
  isUsual: false,
  takes: ['pool', 'concurrency'],
  variants(options) {
    const rounds = options.rounds ?? rateRounds[options.size];
    const pool = options.pool ?? 10;
    const connections = options.concurrency ?? 64;
    return [
      {
        cell: 'overload',
        settings: { pool, connections, times },
        rounds,
        env: { DB_POOL_MAX: String(pool) },
        estimateMs: rateEstimateMs(options.size, 2, rounds * (1 + longer)),
        prepare: (stage) => prepare(stage, options, connections),
      } satisfies Variant,
    ];
  },
};

async function prepare(stage: Stage, { size }: CellOptions, connections: number): Promise<Prepared> {
  const { server, headers, signal } = stage;
  const body = JSON.stringify({ cents: 3_000, item: 'pro-plan' });
  const shot = (): Shot => ({
    method: 'POST',
    path: '/v1/orders',
    headers: { 'Idempotency-Key': randomUUID() },
    body,
  });
  const volley = { url: server.url, connections, headers, shot, expect: 201, signal };
  let accepted = 0;
  const count = (measured: Measured) => {
    accepted += measured.statuses[201] ?? 0;
    return measured;
  };
  let amount = 0;
  let sustained = 0;
  const arms: Arm[] = [
    {
      name: 'sustained',
      async warmUp() {
        amount = await calibrate(volley, warmUpMs[size], roundMs[size], count);
        sustained = (amount / roundMs[size]) * 1_000;
      },
      async run() {
        const fired = count(await fire({ ...volley, amount }));
        sustained = fired.metrics.goodput_per_s ?? sustained;
        return fired;
      },
    },
    {
      name: 'overloaded',
      run: async () =>
        count(
          await flood({
            url: server.url,
            headers,
            shot,
            expect: 201,
            signal,
            patienceMs,
            perSecond: sustained * times,
            forMs: roundMs[size] * longer,
          }),
        ),
    },
  ];
  return { arms, check: () => check(stage, () => accepted) };
}

/** A client that gave up may still have its order; one that was told 201 must, and no key has two. */
async function check(stage: Stage, accepted: () => number): Promise<Check[]> {
  const [row] = await stage.database.sql<{ orders: number; done: number; ids: number }[]>`
    select (select count(*) from orders where tenant = ${tenant})::int as orders,
      count(*) filter (where state = 'done')::int as done,
      count(distinct body) filter (where state = 'done')::int as ids
    from idem where tenant = ${tenant}`;
  const { orders = -1, done = -2, ids = -3 } = row ?? {};
  return [
    { name: 'orders = finished keys', expected: done, actual: orders },
    { name: 'every finished key has an order of its own', expected: done, actual: ids },
    { name: 'acknowledged orders that are not there', expected: 0, actual: Math.max(0, accepted() - orders) },
  ];
}
