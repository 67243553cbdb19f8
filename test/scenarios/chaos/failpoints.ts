import type { Database, Tx } from '../../../src/db/pool.ts';
import type { Provider } from '../../../src/llm/provider.ts';
import { type Reword, rewordStatement, textOf, watchSql } from './statements.ts';

/** The narrow windows in the life of a request, where an owner is easily lost. */
export const windows = [
  'after_claim',
  'after_model',
  'before_commit',
  'after_commit',
  'in_renewal',
  'in_sweep',
] as const;
export type Window = (typeof windows)[number];

/** Told of every window that the process goes through; it may end or stop the process there and then. */
export type OnWindow = (window: Window) => void;

const isClaim = /insert into idem\b/;
const isCompletion = / set state = 'done'/;
const isRenewal = /\brenewed as \(/;
const isSweep = /i\.sweep_at <= now\(\)/;

/** A database that tells of the windows its statements go through. `reword` changes what is sent. */
export function watchDatabase(db: Database, onWindow: OnWindow, reword: Reword = (texts) => texts): Database {
  return {
    ...db,
    async query(build) {
      let text = '';
      const rows = await db.query((sql) => {
        const statement = build(sql);
        rewordStatement(statement, reword);
        text = textOf(statement);
        if (isCompletion.test(text)) onWindow('before_commit');
        if (isRenewal.test(text)) onceSent(() => onWindow('in_renewal'));
        if (isSweep.test(text)) onceSent(() => onWindow('in_sweep'));
        return statement;
      });
      if (isClaim.test(text)) onWindow('after_claim');
      if (isCompletion.test(text)) onWindow('after_commit');
      return rows;
    },
    async transaction(work) {
      let completes = false;
      const result = await db.transaction(async (tx) => {
        const done = await work(
          watchTx(tx, (statement) => {
            rewordStatement(statement, reword);
            completes ||= isCompletion.test(textOf(statement));
          }),
        );
        if (completes) onWindow('before_commit');
        return done;
      });
      if (completes) onWindow('after_commit');
      return result;
    },
  };
}

/** A provider that tells when an answer has come whole and nobody knows it yet. */
export function watchProvider(provider: Provider, onWindow: OnWindow): Provider {
  return {
    ...provider,
    async *generate(call) {
      for await (const piece of provider.generate(call)) {
        if (piece.kind === 'end') onWindow('after_model');
        yield piece;
      }
    },
  };
}

function watchTx(tx: Tx, see: (statement: unknown) => void): Tx {
  return {
    sql: watchSql(tx.sql, see),
    get orm() {
      return tx.orm;
    },
  };
}

/** The driver writes at the end of the turn in which a statement was made. */
function onceSent(then: () => void): void {
  setImmediate(() => setImmediate(then));
}

/**
 * The fence taken out: a completion no longer asks whether the claim is still its own. For the proof that the bench would
 * notice.
 */
export const withoutFence: Reword = (texts) => {
  if (!texts.some((text) => isCompletion.test(text))) return texts;
  // `and fencing_token = $1 and state = 'in_progress'` becomes `and $1::uuid is not null`.
  return texts.map((text) =>
    text.replace(' and fencing_token = ', ' and ').replace(/^\s*and state = 'in_progress'/, '::uuid is not null'),
  );
};
