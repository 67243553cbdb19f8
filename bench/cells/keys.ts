import { randomUUID } from 'node:crypto';
import type { Arm, Cell, CellOptions, Check, Measured, Prepared, Variant } from '../cell.ts';
import { calibrate, fire, type Shot } from '../stage/fire.ts';
import { type Stage, tenant } from '../stage/stage.ts';
import { rateEstimateMs, rateRounds, roundMs, warmUpMs } from './sizes.ts';

const order = { cents: 3_000, item: 'pro-plan' };
const otherOrder = { cents: 9_900, item: 'pro-plan' };
const armNames = ['plain', 'keyed', 'replay', 'conflict', 'get'] as const;
/** Orders that replays, conflicts and reads go to in turn. */
const knownOrders = 200;

/** `POST /v1/orders` with a key against the same INSERT without one, a replay, a conflict and a read. */
export const keys: Cell = {
  name: 'keys',
  title: 'what a key costs: POST with a key, the same INSERT without one, a replay, a conflict, a GET by id',
  isUsual: true,
  takes: ['pool', 'concurrency'],
  variants(options) {
    const rounds = options.rounds ?? rateRounds[options.size];
    const pool = options.pool ?? 10;
    const connections = options.concurrency ?? 32;
    return [
      {
        cell: 'keys',
        settings: { pool, connections },
        rounds,
        env: { DB_POOL_MAX: String(pool) },
        estimateMs: rateEstimateMs(options.size, armNames.length, rounds),
        prepare: (stage) => prepare(stage, options, connections),
      } satisfies Variant,
    ];
  },
};

type Known = { readonly key: string; readonly path: string; readonly text: string };

async function prepare(stage: Stage, { size }: CellOptions, connections: number): Promise<Prepared> {
  const known = await placeKnownOrders(stage);
  const next = <T>(items: readonly T[]) => {
    let index = 0;
    return () => items[index++ % items.length] as T;
  };
  const body = JSON.stringify(order);
  const otherBody = JSON.stringify(otherOrder);
  const [toReplay, toContradict, toRead] = [next(known), next(known), next(known)];
  const post = (key: string, sent: string): Shot => ({
    method: 'POST',
    path: '/v1/orders',
    headers: { 'Idempotency-Key': key },
    body: sent,
  });
  const shots: Readonly<Record<(typeof armNames)[number], { shot: Shot | (() => Shot); expect: number }>> = {
    plain: { shot: { method: 'PUT', path: '/bench/orders', body }, expect: 201 },
    keyed: { shot: () => post(randomUUID(), body), expect: 201 },
    replay: { shot: () => post(toReplay().key, body), expect: 201 },
    conflict: { shot: () => post(toContradict().key, otherBody), expect: 409 },
    get: { shot: () => ({ method: 'GET', path: toRead().path }), expect: 200 },
  };

  // Everything that was ever sent, warm-ups included: the database must hold exactly what follows from it.
  const sent = Object.fromEntries(armNames.map((name) => [name, { requests: 0, expected: 0 }]));
  const arms = armNames.map((name): Arm => {
    const { shot, expect } = shots[name];
    const volley = { url: stage.server.url, connections, headers: stage.headers, shot, expect, signal: stage.signal };
    const count = (measured: Measured) => {
      const tally = sent[name] as { requests: number; expected: number };
      for (const [status, times] of Object.entries(measured.statuses)) {
        tally.requests += times;
        if (status === String(expect)) tally.expected += times;
      }
      return measured;
    };
    let amount = 0;
    return {
      name,
      async warmUp() {
        amount = await calibrate(volley, warmUpMs[size], roundMs[size], count);
      },
      run: async () => count(await fire({ ...volley, amount })),
    };
  });
  return { arms, check: () => check(stage, known, sent) };
}

async function placeKnownOrders(stage: Stage): Promise<readonly Known[]> {
  const known: Known[] = [];
  for (let i = 0; i < knownOrders; i += 1) {
    const key = `known-${i}`;
    const { status, headers, text } = await stage.call('POST /v1/orders', {
      headers: { 'Idempotency-Key': key },
      body: order,
    });
    const path = headers.get('location');
    if (status !== 201 || path === null) throw new Error(`an order was answered with ${status}: ${text}`);
    known.push({ key, path, text });
  }
  return known;
}

async function check(
  stage: Stage,
  known: readonly Known[],
  sent: Readonly<Record<string, { requests: number; expected: number }>>,
): Promise<Check[]> {
  const { sql } = stage.database;
  const [row] = await sql<{ orders: number; done: number; open: number }[]>`
    select (select count(*) from orders where tenant = ${tenant})::int as orders,
      (select count(*) from idem where tenant = ${tenant} and state = 'done')::int as done,
      (select count(*) from idem where tenant = ${tenant} and state <> 'done')::int as open`;
  const keyed = sent.keyed?.expected ?? 0;
  const plain = sent.plain?.expected ?? 0;
  let sameBytes = 0;
  for (const { key, text } of known) {
    const again = await stage.call('POST /v1/orders', { headers: { 'Idempotency-Key': key }, body: order });
    if (again.text === text && again.headers.get('idempotent-replayed') === 'true') sameBytes += 1;
  }
  return [
    ...armNames.map((arm) => ({
      name: 'answers with the expected status',
      arm,
      expected: sent[arm]?.requests ?? 0,
      actual: sent[arm]?.expected ?? 0,
    })),
    { name: 'orders = distinct keys + plain writes', expected: known.length + keyed + plain, actual: row?.orders ?? 0 },
    { name: 'finished keys = distinct keys', expected: known.length + keyed, actual: row?.done ?? 0 },
    { name: 'unfinished keys', expected: 0, actual: row?.open ?? 0 },
    { name: 'replays equal to the first answer, byte for byte', expected: known.length, actual: sameBytes },
  ];
}
