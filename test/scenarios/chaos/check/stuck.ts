import type { Snapshot } from '../snapshot.ts';
import type { Record, Violation } from './record.ts';

const ended = new Set(['succeeded', 'failed', 'cancelled', 'dead']);
/** What a try in the calm may end in besides a success or a refusal: the model was told to, or the credits are used up. */
const ends = new Set(['insufficient_credits', 'upstream_failed', 'upstream_busy', 'upstream_timeout']);

/** Once everything is quiet nobody claims to be at work, and whoever asks again gets an end. */
export function checkStuck(records: readonly Record[], snapshot: Snapshot): Violation[] {
  const found: Violation[] = [];
  const byKey = new Map(records.map(({ intent }) => [`${intent.tenant} ${intent.key}`, intent.id]));
  for (const row of snapshot.keys) {
    const intent = byKey.get(`${row.tenant} ${row.key}`);
    const of = intent === undefined ? {} : { intent };
    if (row.isLeased) found.push({ rule: 'nothing stuck', says: `the key ${row.key} is still leased`, ...of });
    if (row.isOverdue) found.push({ rule: 'nothing stuck', says: `the key ${row.key} should have been swept`, ...of });
  }
  for (const job of snapshot.jobs) {
    if (!ended.has(job.status)) found.push({ rule: 'nothing stuck', says: `${job.id} is ${job.status}` });
  }
  for (const hold of snapshot.holds) {
    found.push({ rule: 'nothing stuck', says: `${hold.amount} micros are still held for ${hold.tenant} ${hold.id}` });
  }
  for (const { intent, tries, successes, refusals } of records) {
    const calm = tries.filter((entry) => entry.calm);
    const last = calm.at(-1);
    if (last === undefined || [...successes, ...refusals].some((entry) => entry.calm)) continue;
    if (last.end.kind === 'answered' && ends.has(last.end.code ?? '')) continue;
    const end = last.end.kind === 'answered' ? `${last.end.status} ${last.end.code}` : last.end.reason;
    found.push({ rule: 'nothing stuck', says: `asked again in the calm it ended in ${end}`, intent: intent.id });
  }
  return found;
}
