import type { History } from '../history.ts';
import type { Snapshot } from '../snapshot.ts';
import { checkAnswers } from './answers.ts';
import { checkBounds } from './bounds.ts';
import { checkDocuments } from './documents.ts';
import { checkEffects } from './effects.ts';
import { checkMoney } from './money.ts';
import { recordsOf, type Violation } from './record.ts';
import { checkStuck } from './stuck.ts';

/** Judges a run by nothing but the clients' log and the final database. */
export function check(history: History, snapshot: Snapshot): Violation[] {
  const records = recordsOf(history, snapshot);
  return [
    ...history.crashes.map((says) => ({ rule: 'no process dies by itself', says })),
    ...checkEffects(records),
    ...checkAnswers(records),
    ...checkDocuments(history, records, snapshot),
    ...checkMoney(records, snapshot),
    ...checkStuck(records, snapshot),
    ...checkBounds(history),
  ];
}
