import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import * as v from 'valibot';
import type { Database } from '../../src/db/pool.ts';
import { type Mounted, mount } from '../../src/handler.ts';
import type { Provider } from '../../src/llm/provider.ts';
import { problem } from '../../src/protocol/errors.ts';
import { procedure } from '../../src/protocol/procedure.ts';
import { docAnswer } from '../../src/resources/docs/item.ts';
import type { DocRow } from '../../src/resources/docs/store.ts';
import { askModel } from './model.ts';

const queuedRewrite = procedure({
  method: 'POST',
  path: '/bench/docs/{id}/queued-rewrite',
  summary: 'Let the model rewrite a document when it is its turn.',
  key: 'required',
  pays: true,
  body: v.strictObject({ instruction: v.string() }),
  answers: { 200: v.any() },
});

/** What a writer has when its turn comes to its end. */
type Turn = { readonly holder: string; readonly doc: DocRow; readonly written: string };

/** A turn ends by itself after this, for an owner that died. Milliseconds. */
const turnMs = 30_000;
/** How often the first of a line looks whether the turn before it is committed. Milliseconds. */
const lookMs = 5;

/** Made by the benchmark beside the server's own tables: whose turn it is at a document. */
export async function createTurns(db: Database): Promise<void> {
  await db.query(
    (sql) => sql`
      create table if not exists bench_turns (
        tenant text not null, doc_id text not null, holder uuid not null, lease_until timestamptz not null,
        primary key (tenant, doc_id))`,
  );
}

/**
 * `POST /bench/docs/{id}/queued-rewrite`: writers of one document take turns. A turn is a lease in a row of its own, taken
 * by a short statement, so no connection is held; within a process they stand in line and only the first one asks.
 */
export function queuedRewriteProcedures(db: Database, provider: Provider): Mounted[] {
  const lines = new Map<string, Promise<void>>();

  /** Waits for those of this process that came before; resolves with what lets the next one go ahead. */
  const standInLine = async (name: string): Promise<() => void> => {
    const before = lines.get(name) ?? Promise.resolve();
    let leave = () => {};
    const left = new Promise<void>((resolve) => {
      leave = resolve;
    });
    const next = before.then(() => left);
    lines.set(name, next);
    void next.then(() => lines.get(name) === next && lines.delete(name));
    await before;
    return leave;
  };

  const takeTurn = async (tenant: string, id: string, holder: string, signal: AbortSignal) => {
    for (;;) {
      const rows = await db.query(
        (sql) => sql`
          insert into bench_turns as t (tenant, doc_id, holder, lease_until)
          values (${tenant}, ${id}, ${holder}, clock_timestamp() + ${turnMs}::float8 * interval '1 millisecond')
          on conflict (tenant, doc_id) do update set holder = excluded.holder, lease_until = excluded.lease_until
            where t.lease_until <= clock_timestamp()
          returning 1`,
      );
      if (rows.length === 1) return;
      await sleep(lookMs, undefined, { signal });
    }
  };

  return [
    mount<typeof queuedRewrite, Turn>(queuedRewrite, {
      async prepare({ params, body }, ctx) {
        const leave = await standInLine(`${ctx.tenant} ${params.id}`);
        try {
          const holder = randomUUID();
          await takeTurn(ctx.tenant, params.id, holder, ctx.signal);
          const [doc] = await db.query(
            (sql) => sql<DocRow[]>`
              select id, title, body, version, created_at, updated_at, updated_by from docs
              where tenant = ${ctx.tenant} and id = ${params.id} and deleted_at is null`,
          );
          if (doc === undefined) throw problem('not_found');
          return { holder, doc, written: await askModel(provider, ctx, body.instruction, doc.body) };
        } finally {
          // The next one asks for the turn, which is free once this one's work is committed.
          leave();
        }
      },
      async commit({ sql }, { holder, doc, written }, _input, ctx) {
        const ended = await sql`
          update bench_turns set lease_until = '-infinity'
          where tenant = ${ctx.tenant} and doc_id = ${doc.id} and holder = ${holder} returning 1`;
        const [changed] = await sql<DocRow[]>`
          update docs set body = ${written}, version = version + 1, updated_at = clock_timestamp(), updated_by = ${ctx.sub}
          where tenant = ${ctx.tenant} and id = ${doc.id} and version = ${doc.version}
          returning id, title, body, version, created_at, updated_at, updated_by`;
        // The turn ran out while the model thought, and somebody else has written.
        if (ended.length === 0 || changed === undefined) throw problem('unavailable', { retryAfterMs: 1_000 });
        return docAnswer(200, ctx.tenant, changed);
      },
    }),
  ];
}
