import { type History, type Intent, isRefusal, isSuccess, markerOf, type Try } from '../history.ts';
import type { KeyState, Snapshot } from '../snapshot.ts';

/** Something that must not be. */
export type Violation = {
  /** The promise that is broken, in a word. */
  readonly rule: string;
  readonly says: string;
  /** The intent whose history shows it. */
  readonly intent?: number;
};

/** An intent with all that is known of it. */
export type Record = {
  readonly intent: Intent;
  readonly tries: readonly Try[];
  readonly successes: readonly (Try & { end: { kind: 'answered' } })[];
  readonly refusals: readonly (Try & { end: { kind: 'answered' } })[];
  /** What the database holds under its key. */
  readonly key: KeyState | undefined;
  /** How often it was done. */
  readonly effects: number;
};

/** Brings log and database together, intent by intent. */
export function recordsOf(history: History, snapshot: Snapshot): Record[] {
  const tries = groupBy(history.tries, (entry) => entry.intent);
  const keys = new Map(snapshot.keys.map((row) => [`${row.tenant} ${row.key}`, row]));
  const effectsOf = effectCounter(snapshot);
  return history.intents.map((intent) => {
    const own = tries.get(intent.id) ?? [];
    return {
      intent,
      tries: own,
      successes: own.filter((entry) => isSuccess(entry.end)) as Record['successes'],
      refusals: own.filter((entry) => isRefusal(entry.end)) as Record['refusals'],
      key: intent.key === undefined ? undefined : keys.get(`${intent.tenant} ${intent.key}`),
      effects: effectsOf(intent),
    };
  });
}

/** Counts how often an intent was done, by the marker it leaves. */
function effectCounter(snapshot: Snapshot): (intent: Intent) => number {
  const marks = new Map<string, number>();
  const written = [
    ...snapshot.orders.map((order) => order.item),
    ...snapshot.docs.map((doc) => doc.body),
    ...snapshot.jobs.map((job) => job.prompt),
  ];
  for (const mark of written.flatMap(markersIn)) marks.set(mark, (marks.get(mark) ?? 0) + 1);
  const docs = new Map(snapshot.docs.map((doc) => [`${doc.tenant} ${doc.id}`, doc]));
  const credits = groupBy(
    snapshot.ledger.filter((entry) => entry.kind === 'credit'),
    (entry) => `${entry.tenant} ${entry.amount}`,
  );
  return (intent) => {
    const doc = docs.get(`${intent.tenant} ${intent.docId}`);
    switch (intent.kind) {
      case 'credit':
        return credits.get(`${intent.tenant} ${intent.amountMicros}`)?.length ?? 0;
      // The client chose the id, so there is one row at most; each further life would count a version.
      case 'put_new':
        return doc?.version ?? 0;
      case 'remove':
        return doc?.isDeleted ? 1 : 0;
      default:
        return marks.get(markerOf(intent)) ?? 0;
    }
  };
}

/** The markers in a text, in order. */
export function markersIn(text: string): string[] {
  return text.match(/#[0-9]+#/g) ?? [];
}

/** Items by the name that `nameOf` gives each. */
export function groupBy<T, Name>(items: readonly T[], nameOf: (item: T) => Name): Map<Name, T[]> {
  const groups = new Map<Name, T[]>();
  for (const item of items) {
    const name = nameOf(item);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [item]);
    else group.push(item);
  }
  return groups;
}
