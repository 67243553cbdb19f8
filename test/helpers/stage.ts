import { randomUUID } from 'node:crypto';
import * as v from 'valibot';
import type { Tx } from '../../src/db/pool.ts';
import { type Answer, type Mounted, mount, type WriteContext } from '../../src/handler.ts';
import { procedure } from '../../src/protocol/procedure.ts';

/** What a test lets a request with a certain key do; each part defaults to nothing. */
export type Play = {
  /** In `prepare`: no transaction is open. */
  prepare?(ctx: WriteContext): Promise<void>;
  /** In the transaction, before the order is written. */
  before?(tx: Tx, ctx: WriteContext): Promise<void>;
  /** In the transaction, after the order was written; an answer replaces the order's. */
  after?(tx: Tx, ctx: WriteContext): Promise<Answer | undefined>;
};

/** A procedure whose every step a test decides, mounted through the same table as the server's own. */
export type Stage = {
  readonly procedures: () => readonly Mounted[];
  /** Decides what requests with this key do from now on. */
  on(key: string, play: Play): void;
  /** Owners that began to run for the key. */
  runs(key: string): number;
};

/** `POST /v1/test/slow`: places an order, as slowly as it is told. */
export const slowProcedure = procedure({
  method: 'POST',
  path: '/v1/test/slow',
  summary: 'Place an order, as slowly as the test says.',
  key: 'required',
  body: v.strictObject({ cents: v.number(), note: v.optional(v.string(), 'default') }),
  answers: { 201: v.object({ order_id: v.string() }) },
});

/** `POST /v1/test/spend`: the same, and it counts against the rate limit. */
export const spendProcedure = procedure({ ...slowProcedure, path: '/v1/test/spend', spends: true });

/** `POST /v1/test/pay`: the same, with a claim that is flushed, for a scope. */
export const payProcedure = procedure({ ...slowProcedure, path: '/v1/test/pay', scope: 'test:pay', pays: true });

/** `POST /v1/test/any`: the same, and it takes any JSON in the member `any`. */
export const anyProcedure = procedure({
  ...slowProcedure,
  path: '/v1/test/any',
  body: v.strictObject({ cents: v.number(), note: v.optional(v.string(), 'default'), any: v.optional(v.unknown()) }),
});

/** `PUT /v1/test/slow`: the same, where a key is accepted and not required. */
export const putProcedure = procedure({ ...slowProcedure, method: 'PUT', key: 'accepted' });

/** A fresh stage. A key without a part of its own plays the `usual` one: by default it just places its order. */
export function createStage(usual: Play = {}): Stage {
  const plays = new Map<string, Play>();
  const counts = new Map<string, number>();
  const handler = {
    async prepare(_input: unknown, ctx: WriteContext): Promise<undefined> {
      const key = ctx.key ?? 'none';
      counts.set(key, (counts.get(key) ?? 0) + 1);
      await (plays.get(key) ?? usual).prepare?.(ctx);
      return undefined;
    },
    async commit(tx: Tx, _prepared: undefined, input: { body: { cents: number } }, ctx: WriteContext): Promise<Answer> {
      const play = plays.get(ctx.key ?? 'none') ?? usual;
      await play.before?.(tx, ctx);
      const id = randomUUID();
      await tx.sql`insert into orders (tenant, id, cents, item, created_at)
        values (${ctx.tenant}, ${id}, ${input.body.cents}, 'slow', ${ctx.now})`;
      const answer = await play.after?.(tx, ctx);
      return answer ?? { status: 201, headers: { Location: `/v1/test/${id}` }, body: { order_id: id } };
    },
  };
  return {
    procedures: () => [
      mount(slowProcedure, handler),
      mount(spendProcedure, handler),
      mount(payProcedure, handler),
      mount(anyProcedure, handler),
      mount(putProcedure, handler),
    ],
    on: (key, play) => void plays.set(key, play),
    runs: (key) => counts.get(key) ?? 0,
  };
}

/** A door in a play: whoever comes waits until the test opens it. */
export type Door = {
  /** Resolves when somebody has come. */
  readonly arrived: Promise<void>;
  /** What the play awaits. */
  pass(): Promise<void>;
  open(): void;
  /** Lets whoever waits fail with the error. */
  fail(error: unknown): void;
};

/** A closed door. */
export function createDoor(): Door {
  let arrive = () => {};
  let open = () => {};
  let fail: (error: unknown) => void = () => {};
  const arrived = new Promise<void>((resolve) => {
    arrive = resolve;
  });
  const opened = new Promise<void>((resolve, reject) => {
    open = resolve;
    fail = reject;
  });
  opened.catch(() => {});
  return {
    arrived,
    pass() {
      arrive();
      return opened;
    },
    open,
    fail,
  };
}
