import * as v from 'valibot';
import { type Mounted, mount } from '../../src/handler.ts';
import type { Provider } from '../../src/llm/provider.ts';
import { problem } from '../../src/protocol/errors.ts';
import { procedure } from '../../src/protocol/procedure.ts';
import { docAnswer } from '../../src/resources/docs/item.ts';
import type { DocRow } from '../../src/resources/docs/store.ts';
import { askModel } from './model.ts';

const lockedRewrite = procedure({
  method: 'POST',
  path: '/bench/docs/{id}/locked-rewrite',
  summary: 'Let the model rewrite a document whose row is locked meanwhile.',
  key: 'required',
  pays: true,
  body: v.strictObject({ instruction: v.string() }),
  answers: { 200: v.any() },
});

/**
 * `POST /bench/docs/{id}/locked-rewrite`: the row-lock way, as its advocates write it: `select … for update`, the model
 * call, the update, `commit`. Correct, and a connection is held for as long as the model thinks.
 * With `losesUpdates` the lock is left out and the version computed from what was read: a fault that the checks must find.
 */
export function lockedRewriteProcedures(provider: Provider, losesUpdates: boolean): Mounted[] {
  return [
    mount(lockedRewrite, {
      async commit({ sql }, _prepared, { params, body }, ctx) {
        const [doc] = await sql<DocRow[]>`
          select id, title, body, version, created_at, updated_at, updated_by from docs
          where tenant = ${ctx.tenant} and id = ${params.id} and deleted_at is null
          ${losesUpdates ? sql`` : sql`for update`}`;
        if (doc === undefined) throw problem('not_found');
        const written = await askModel(provider, ctx, body.instruction, doc.body);
        const [changed] = await sql<DocRow[]>`
          update docs set body = ${written}, version = ${losesUpdates ? sql`${doc.version + 1}::integer` : sql`version + 1`},
            updated_at = clock_timestamp(), updated_by = ${ctx.sub}
          where tenant = ${ctx.tenant} and id = ${params.id}
          returning id, title, body, version, created_at, updated_at, updated_by`;
        return docAnswer(200, ctx.tenant, changed as DocRow);
      },
    }),
  ];
}
