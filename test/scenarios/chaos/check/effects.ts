import type { Record, Violation } from './record.ts';

/** Each intent was done once or not at all; not at all only if nobody was told otherwise; work and stored answer came together. */
export function checkEffects(records: readonly Record[]): Violation[] {
  return records.flatMap(({ intent, successes, refusals, key, effects }) => {
    const found: Violation[] = [];
    const add = (rule: string, says: string) => found.push({ rule, says, intent: intent.id });
    if (effects > 1) add('done once', `it was done ${effects} times`);
    if (successes.length > 0 && effects === 0)
      add('nothing lost', 'a success was answered, and nothing of it is there');
    if (intent.key === undefined) return found;
    const isStored = key?.state === 'done' && (key.status ?? 0) < 300;
    if (effects > 0 && !isStored)
      add('work and answer together', 'it was done, and no success is stored under its key');
    if (effects === 0 && isStored)
      add('work and answer together', 'a success is stored under its key, and it was not done');
    if (effects > 0 && refusals.length > 0) {
      add('one’s own success is never refused', `it was done, and ${refusals[0]?.end.code} was answered`);
    }
    return found;
  });
}
