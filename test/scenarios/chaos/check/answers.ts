import { type Answered, type IntentKind, isStored } from '../history.ts';
import type { Record, Violation } from './record.ts';

/** Refusals that an intent of the kind may meet; whoever sends the same thing again must meet no others. */
const expected: { readonly [kind in IntentKind]?: readonly string[] } = {
  edit: ['precondition_failed'],
  patch: ['precondition_failed'],
  unkeyed_edit: ['precondition_failed'],
  rewrite: ['precondition_failed'],
};

/** All success answers of an intent are the same bytes, those of the database too; errors are of the kinds that were promised. */
export function checkAnswers(records: readonly Record[]): Violation[] {
  return records.flatMap(({ intent, tries, successes, refusals, key }) => {
    const found: Violation[] = [];
    const add = (rule: string, says: string) => found.push({ rule, says, intent: intent.id });
    const stored = tries.map((entry) => entry.end).filter(isStored);
    const answers = new Set([...successes.map((entry) => entry.end), ...stored].map(bytesOf));
    if (answers.size > 1) add('one answer', `${answers.size} different answers were given`);
    const firsts = stored.filter((end) => end.replayed === 'false').length;
    if (firsts > 1) add('one answer', `${firsts} answers say that they are the first`);
    const kept = key?.state === 'done' ? `${key.status} ${key.body ?? ''}` : undefined;
    const told = stored[0] && `${stored[0].status} ${stored[0].body}`;
    if (told !== undefined && told !== kept) add('one answer', 'what is stored is not what was answered');

    for (const { end } of tries) {
      if (end.kind !== 'answered' || end.status < 500 || end.status === 503) continue;
      if (intent.kind !== 'rewrite' || !end.code?.startsWith('upstream_')) {
        add('no 5xx but 503', `${end.status} ${end.code} was answered`);
      }
    }
    for (const { end } of refusals) {
      const isGone = intent.kind === 'remove' && intent.key === undefined && end.code === 'not_found';
      const isLateCopy = intent.kind === 'remove' && intent.key === undefined && end.code === 'precondition_failed';
      if (!isGone && !isLateCopy && !expected[intent.kind]?.includes(end.code ?? '')) {
        add('no refusal out of place', `${end.status} ${end.code} was answered`);
      }
    }
    return found;
  });
}

function bytesOf({ status, body, headers }: Answered): string {
  return `${status} ${headers} ${body}`;
}
