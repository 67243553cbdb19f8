import type { Database } from '../../db/pool.ts';
import { type Mounted, mount } from '../../handler.ts';
import { contract } from '../../protocol/contract.ts';
import { problem } from '../../protocol/errors.ts';
import { includesVersion } from '../../protocol/version-condition.ts';
import { listBinding, type Pager, pageAnswer } from '../page.ts';
import { changed, hasBody, targetOf } from './conditions.ts';
import { docAnswer, docItem, docTag } from './item.ts';
import { findDoc, listDocs } from './store.ts';

/** Reading documents. */
export function docReads(db: Database, pager: Pager): Mounted[] {
  return [
    mount(contract.getDoc, {
      async read({ params }, ctx) {
        const { name, condition } = targetOf(params.id, ctx);
        const [doc] = await db.query((sql) => findDoc(sql, name, condition));
        if (doc === undefined) throw problem('not_found');
        if (hasBody(doc)) return docAnswer(200, ctx.tenant, doc);
        // If-Match is judged first (RFC 9110 §13.2.2). Either way the body was not read.
        if (!includesVersion(condition.wanted, doc.version)) throw changed(ctx.tenant, doc);
        return { status: 304, headers: { ETag: docTag(ctx.tenant, doc) } };
      },
    }),

    mount(contract.listDocs, {
      async read({ query: { limit, after } }, { tenant }) {
        const binding = listBinding(tenant, contract.listDocs.path);
        const [createdAt, id] = pager.start(binding, after) ?? [];
        const position = createdAt === undefined || id === undefined ? undefined : { createdAt, id };
        return pageAnswer(pager, {
          binding,
          limit,
          after,
          rows: await db.query((sql) => listDocs(sql, tenant, position, limit + 1)),
          // Whole milliseconds, as in the column: nothing is rounded away.
          position: (doc) => [doc.created_at.toISOString(), doc.id],
          item: (doc) => docItem(tenant, doc),
          version: (doc) => [doc.id, doc.version],
        });
      },
    }),
  ];
}
