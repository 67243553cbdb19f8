import { createHash } from 'node:crypto';
import * as v from 'valibot';
import type { Database } from '../../src/db/pool.ts';
import { type Mounted, mount } from '../../src/handler.ts';
import { formatTag } from '../../src/protocol/entity-tag.ts';
import { problem } from '../../src/protocol/errors.ts';
import { procedure } from '../../src/protocol/procedure.ts';
import { docBody } from '../../src/resources/docs/item.ts';
import { findDoc } from '../../src/resources/docs/store.ts';

const hashedDoc = procedure({
  method: 'GET',
  path: '/bench/docs/{id}',
  summary: 'Read a document whose tag is a hash of its bytes.',
  tag: true,
  answers: { 200: v.any() },
});

const anyVersion = { wanted: 'any', unwanted: [] } as const;

/**
 * `GET /bench/docs/{id}`: the same document with a tag made as frameworks make it by default, by hashing what would be sent.
 * The document is read whole for every answer, a 304 too.
 */
export function hashedDocProcedures(db: Database): Mounted[] {
  return [
    mount(hashedDoc, {
      async read({ params }, { tenant }) {
        const [doc] = await db.query((sql) => findDoc(sql, { tenant, id: params.id }, anyVersion));
        if (doc === undefined || doc.body === null) throw problem('not_found');
        const body = docBody(tenant, { ...doc, body: doc.body });
        const digest = createHash('sha256').update(JSON.stringify(body)).digest('base64url');
        return { status: 200, headers: { ETag: formatTag({ opaque: digest, weak: true }) }, body };
      },
    }),
  ];
}
