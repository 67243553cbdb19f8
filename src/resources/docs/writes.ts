import type { Database } from '../../db/pool.ts';
import { type CheckMoment, type Context, type Mounted, mount } from '../../handler.ts';
import { contract } from '../../protocol/contract.ts';
import { problem } from '../../protocol/errors.ts';
import { formatId, formatUuidV7, idRandomBytes } from '../../protocol/uuid.ts';
import { allowsVersion, includesVersion } from '../../protocol/version-condition.ts';
import { random } from '../../random.ts';
import { changed, currentDoc, type Target, targetOf, writeUnderCondition } from './conditions.ts';
import { docAnswer } from './item.ts';
import { createDoc, type DocHead, type DocRow, deleteDoc, insertDoc, patchDoc, replaceDoc } from './store.ts';

const prefix = 'doc';

/** Writing documents: nobody's edit is silently overwritten. */
export function docWrites(db: Database): Mounted[] {
  const check = async ({ params }: { params: { id: string } }, ctx: Context, moment: CheckMoment) => {
    const target = targetOf(params.id, ctx);
    const current = await currentDoc(target, (build) => db.query(build));
    if (current === undefined) {
      if (isCreation(ctx)) return;
      throw problem('not_found');
    }
    const { condition } = target;
    if (allowsVersion(condition, current.version)) return;
    // Whether it is a PUT that was done already, only the body can tell.
    if (moment === 'before_body' && mayBeRepeated(target, ctx, current)) return;
    throw changed(ctx.tenant, current);
  };

  return [
    mount(contract.createDoc, {
      statement({ body }, { tenant, sub, now }) {
        const id = formatId(prefix, formatUuidV7(now.getTime(), random(idRandomBytes)));
        const doc: DocRow = { id, ...body, version: 1, created_at: now, updated_at: now, updated_by: sub };
        return {
          answer: docAnswer(201, tenant, doc, { Location: `/v1/docs/${id}` }),
          work: (sql) => insertDoc(sql, tenant, doc),
        };
      },
    }),

    mount(contract.putDoc, {
      check,
      async commit(tx, _prepared, { params, body }, ctx) {
        const target = targetOf(params.id, ctx);
        const { name, condition } = target;
        if (isCreation(ctx)) {
          const created = await writeUnderCondition(tx.sql, target, {
            write: () => createDoc(tx.sql, name, body, ctx.sub),
            creates: true,
          });
          return docAnswer(201, ctx.tenant, created);
        }
        const replaced = await writeUnderCondition(tx.sql, target, {
          write: () => replaceDoc(tx.sql, name, condition, body, ctx.sub),
          mayBeDone: (doc) => mayBeRepeated(target, ctx, doc),
          isDone: (doc) => doc.title === body.title && doc.body === body.body,
        });
        return docAnswer(200, ctx.tenant, replaced);
      },
    }),

    mount(contract.patchDoc, {
      check,
      async commit(tx, _prepared, { params, body }, ctx) {
        const target = targetOf(params.id, ctx);
        const { name, condition } = target;
        const patched = await writeUnderCondition(tx.sql, target, {
          write: () => patchDoc(tx.sql, name, condition, body, ctx.sub),
          mayBeDone: (doc) => allowsVersion(condition, doc.version),
          isDone: (doc) => (body.title ?? doc.title) === doc.title && (body.body ?? doc.body) === doc.body,
        });
        return docAnswer(200, ctx.tenant, patched);
      },
    }),

    mount(contract.deleteDoc, {
      check,
      async commit(tx, _prepared, { params }, ctx) {
        const target = targetOf(params.id, ctx);
        await writeUnderCondition(tx.sql, target, {
          write: () => deleteDoc(tx.sql, target.name, target.condition, ctx.sub),
        });
        return { status: 204 };
      },
    }),
  ];
}

/** `If-None-Match: *` alone. With If-Match beside it, one of the two fails whatever is there. */
function isCreation(ctx: Context): boolean {
  return ctx.ifNoneMatch.kind === 'any' && ctx.ifMatch.kind === 'absent';
}

/**
 * A PUT whose answer was lost is sent again: then the version after the one it names is its own. `*` names none, and the
 * first version of a new life follows none.
 */
function mayBeRepeated({ condition }: Target, ctx: Context, doc: DocHead): boolean {
  return (
    condition.wanted !== 'any' &&
    includesVersion(condition.wanted, doc.version - 1) &&
    !includesVersion(condition.unwanted, doc.version) &&
    doc.updated_at > doc.created_at &&
    doc.updated_by === ctx.sub
  );
}
