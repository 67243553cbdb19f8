import type { Database, Tx } from '../../db/pool.ts';
import { type Answer, type CheckMoment, type Context, type Mounted, mount, type WriteContext } from '../../handler.ts';
import { contract } from '../../protocol/contract.ts';
import { problem } from '../../protocol/errors.ts';
import type { Input, WriteProcedure } from '../../protocol/procedure.ts';
import { formatId, formatUuidV7, idRandomBytes } from '../../protocol/uuid.ts';
import { allowsVersion, includesVersion } from '../../protocol/version-condition.ts';
import { random } from '../../random.ts';
import { changed, currentDoc, type Target, targetOf, writeUnderCondition } from './conditions.ts';
import { docAnswer } from './item.ts';
import {
  createDoc,
  type DocHead,
  type DocRow,
  deleteDoc,
  insertDoc,
  inTransaction,
  patchDoc,
  type Run,
  replaceDoc,
} from './store.ts';

const prefix = 'doc';

/** Writing documents: nobody's edit is silently overwritten. */
export function docWrites(db: Database): Mounted[] {
  const check = async ({ params }: { params: { id: string } }, ctx: Context, moment: CheckMoment) => {
    const target = targetOf(params.id, ctx);
    const current = await currentDoc(target, db.query);
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

    mount(contract.putDoc, { check, ...keyedOrAlone(db, put) }),
    mount(contract.patchDoc, { check, ...keyedOrAlone(db, patch) }),
    mount(contract.deleteDoc, { check, ...keyedOrAlone(db, remove) }),
  ];
}

/** A write that is one statement needs a transaction only when a key's answer has to be stored with it. */
function keyedOrAlone<P extends WriteProcedure>(
  db: Database,
  write: (run: Run, input: Input<P>, ctx: WriteContext) => Promise<Answer>,
) {
  return {
    commit: (tx: Tx, _prepared: unknown, input: Input<P>, ctx: WriteContext) => write(inTransaction(tx), input, ctx),
    alone: (input: Input<P>, ctx: WriteContext) => write(db.query, input, ctx),
  };
}

async function put(run: Run, { params, body }: Input<typeof contract.putDoc>, ctx: WriteContext): Promise<Answer> {
  const target = targetOf(params.id, ctx);
  const { name, condition } = target;
  if (isCreation(ctx)) {
    const created = await writeUnderCondition(run, target, {
      write: () => createDoc(run, name, body, ctx.sub),
      creates: true,
    });
    return docAnswer(201, ctx.tenant, created);
  }
  const replaced = await writeUnderCondition(run, target, {
    write: () => replaceDoc(run, name, condition, body, ctx.sub),
    mayBeDone: (doc) => mayBeRepeated(target, ctx, doc),
    isDone: (doc) => doc.title === body.title && doc.body === body.body,
  });
  return docAnswer(200, ctx.tenant, replaced);
}

async function patch(run: Run, { params, body }: Input<typeof contract.patchDoc>, ctx: WriteContext): Promise<Answer> {
  const target = targetOf(params.id, ctx);
  const { name, condition } = target;
  const patched = await writeUnderCondition(run, target, {
    write: () => patchDoc(run, name, condition, body, ctx.sub),
    // Nothing was written because nothing would change.
    mayBeDone: (doc) => allowsVersion(condition, doc.version),
    isDone: (doc) => (body.title ?? doc.title) === doc.title && (body.body ?? doc.body) === doc.body,
  });
  return docAnswer(200, ctx.tenant, patched);
}

async function remove(run: Run, { params }: Input<typeof contract.deleteDoc>, ctx: WriteContext): Promise<Answer> {
  const target = targetOf(params.id, ctx);
  await writeUnderCondition(run, target, { write: () => deleteDoc(run, target.name, target.condition, ctx.sub) });
  return { status: 204 };
}

/** `If-None-Match: *` alone. With If-Match beside it, one of the two fails whatever is there. */
function isCreation(ctx: Context): boolean {
  return ctx.ifNoneMatch.kind === 'any' && ctx.ifMatch.kind === 'absent';
}

/**
 * A PUT whose answer was lost is sent again: then the version after the one it names is its own. The first version of a new
 * life follows none.
 */
function mayBeRepeated({ condition }: Target, ctx: Context, doc: DocHead): boolean {
  return (
    includesVersion(condition.wanted, doc.version - 1) &&
    !includesVersion(condition.unwanted, doc.version) &&
    doc.updated_at > doc.created_at &&
    doc.updated_by === ctx.sub
  );
}
