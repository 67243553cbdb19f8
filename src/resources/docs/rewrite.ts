import { settle } from '../../credits/holds.ts';
import { type Answer, type Context, type Mounted, mount, type WriteContext } from '../../handler.ts';
import { estimatePromptTokens } from '../../llm/tokens.ts';
import { contract } from '../../protocol/contract.ts';
import { Problem, problem } from '../../protocol/errors.ts';
import { allowsVersion, type VersionCondition } from '../../protocol/version-condition.ts';
import { changed, currentDoc, hasBody, type Target, targetOf, writeUnderCondition } from './conditions.ts';
import { docAnswer } from './item.ts';
import { callForRewrite, type RewriteParts, type Written } from './rewrite-call.ts';
import { bodyOf, rewritePrompt } from './rewrite-text.ts';
import { type DocRow, findDoc, inTransaction, patchDoc, type Run } from './store.ts';

/** Fewest and most tokens that a rewrite may take: room for a short document to grow, and for a full one whole. */
const minTokens = 1_024;
const maxTokens = 262_144;

/** From the call to the commit. */
type Rewriting = { readonly target: Target; readonly written: Written };

/** Rewriting a document: read it, let the model think with nothing held, write it back if it is still the same version. */
export function rewriteProcedures(parts: RewriteParts): Mounted[] {
  const { db } = parts;

  /** The document if the request may have it; throws 404 or 412, before anything is paid. */
  const admit = async (target: Target): Promise<DocRow> => {
    const [doc] = await db.query((sql) => findDoc(sql, target.name, target.condition));
    if (doc !== undefined && hasBody(doc)) return doc;
    const current = doc && (await currentDoc(target, db.query));
    throw current === undefined ? problem('not_found') : changed(target.name.tenant, current);
  };

  return [
    mount<typeof contract.rewriteDoc, Rewriting>(contract.rewriteDoc, {
      async check({ params }, ctx) {
        await admit(targetOf(params.id, ctx));
      },

      async prepare({ params, body }, ctx) {
        const asked = targetOf(params.id, ctx);
        const doc = await admit(asked);
        const target = { ...asked, condition: conditionOfWrite(asked, ctx, doc) };
        const written = await callForRewrite(
          parts,
          {
            docId: doc.id,
            version: doc.version,
            prompt: rewritePrompt(body.instruction, doc),
            maxTokens: Math.min(Math.max(minTokens, 2 * estimatePromptTokens(doc.body)), maxTokens),
            async hasMoved() {
              const current = await currentDoc({ ...target, showsCurrent: false }, db.query);
              return current === undefined || !allowsVersion(target.condition, current.version);
            },
          },
          ctx,
        );
        return { target, written };
      },

      async commit(tx, { target, written }, _input, ctx) {
        const answer = await writeOrDraft(inTransaction(tx), target, written, ctx);
        const use = { chargeMicros: written.chargeMicros, unknownAttempts: 0 };
        // Gone when its owner was taken for dead; then the claim has a new owner, too, or soon will.
        if ((await settle(tx.sql, written.source, use)) === undefined) throw problem('unavailable');
        return answer;
      },
    }),
  ];
}

/** What is written back must be what was read; `If-Match: *` asks for no version, and so writes over whatever is there. */
function conditionOfWrite(asked: Target, ctx: Context, doc: DocRow): VersionCondition {
  return ctx.ifMatch.kind === 'any' ? asked.condition : { wanted: [doc.version], unwanted: [] };
}

/** The rewritten document, or the refusal with what the model wrote: it is paid, so it is stored with the refusal. */
async function writeOrDraft(run: Run, target: Target, written: Written, ctx: WriteContext): Promise<Answer> {
  const { tenant } = ctx;
  const body = bodyOf(written.text);
  try {
    if (!written.isWhole) throw await lost(run, target);
    const doc = await writeUnderCondition(run, target, {
      write: () => patchDoc(run, target.name, target.condition, { body }, ctx.sub),
      // A text that is the same leaves the version alone.
      mayBeDone: (current) => allowsVersion(target.condition, current.version),
      isDone: (current) => current.body === body,
    });
    return docAnswer(200, tenant, doc);
  } catch (error) {
    if (!(error instanceof Problem) || error.status >= 500) throw error;
    const members = { ...error.options.members, draft: written.text };
    return ctx.refuse(problem(error.code, { ...error.options, members }));
  }
}

async function lost(run: Run, target: Target): Promise<Problem> {
  const current = await currentDoc(target, run);
  return current === undefined ? problem('not_found') : changed(target.name.tenant, current);
}
