import type { LedgerState, Snapshot } from '../snapshot.ts';
import { groupBy, type Record, type Violation } from './record.ts';

const ended = new Set(['succeeded', 'failed', 'cancelled', 'dead']);

/** The books agree, and everything is paid once. */
export function checkMoney(records: readonly Record[], snapshot: Snapshot): Violation[] {
  const found: Violation[] = [];
  const byMark = new Map(records.map(({ intent }) => [intent.id, intent.id]));
  const add = (rule: string, says: string, intent?: number) =>
    found.push({ rule, says, ...(intent === undefined ? {} : { intent }) });

  for (const { tenant, balance, held } of snapshot.balances) {
    const sum = total(snapshot.ledger.filter((entry) => entry.tenant === tenant));
    const open = snapshot.holds.filter((hold) => hold.tenant === tenant).reduce((all, hold) => all + hold.amount, 0);
    if (balance < 0) add('no balance below zero', `${tenant} has ${balance} micros`);
    if (balance !== sum) add('the books agree', `${tenant} has ${balance} micros, its ledger makes ${sum}`);
    if (held !== open) add('the books agree', `${held} micros of ${tenant} are held, its holds make ${open}`);
  }

  const sources = groupBy(
    snapshot.ledger.filter((entry) => entry.type !== 'credit'),
    (entry) => `${entry.tenant} ${entry.id}`,
  );
  const open = new Set(snapshot.holds.map((hold) => `${hold.tenant} ${hold.id}`));
  for (const [name, entries] of sources) {
    const [hold, release, charge] = (['hold', 'release', 'charge'] as const).map((kind) =>
      entries.filter((entry) => entry.kind === kind),
    ) as [LedgerState[], LedgerState[], LedgerState[]];
    if (hold.length !== 1) add('one hold', `${name} was held ${hold.length} times`);
    if (charge.length > 1) add('one charge', `${name} was charged ${charge.length} times`);
    if (release.length + (open.has(name) ? 1 : 0) !== 1)
      add('the books agree', `${name} was released ${release.length} times`);
    if (release.length === 1 && total(release) !== -total(hold))
      add('the books agree', `${name} released what it did not hold`);
    if (-total(charge) > -total(hold)) add('one charge', `${name} was charged more than it held`);
  }

  for (const job of snapshot.jobs) {
    const intent = byMark.get(Number(/#([0-9]+)#/.exec(job.prompt)?.[1]));
    const entries = sources.get(`${job.tenant} ${job.id}`) ?? [];
    const charged = -total(entries.filter((entry) => entry.kind === 'charge'));
    const held = -total(entries.filter((entry) => entry.kind === 'hold'));
    if (entries.length === 0) add('one hold', `${job.id} is there without a hold`, intent);
    if (!ended.has(job.status)) continue;
    if (charged !== job.cost) add('one charge', `${job.id} cost ${job.cost} and was charged ${charged}`, intent);
    if (job.cost !== Math.min(job.used, held))
      add('one charge', `${job.id} used ${job.used} and cost ${job.cost}`, intent);
  }
  const jobs = new Set(snapshot.jobs.map((job) => `${job.tenant} ${job.id}`));
  for (const [name, [entry]] of sources) {
    if (entry?.type === 'job' && !jobs.has(name)) add('one hold', `${name} is held for and not there`);
  }
  found.push(...checkRewrites(records, snapshot));
  return found;
}

/** A rewrite is charged when its outcome is stored, and only then: a success always, a draft for what was written of it. */
function checkRewrites(records: readonly Record[], snapshot: Snapshot): Violation[] {
  const charges = groupBy(
    snapshot.ledger.filter((entry) => entry.type === 'rewrite' && entry.kind === 'charge'),
    // The source's name begins with the document's.
    (entry) => `${entry.tenant} ${entry.id.split(':')[0]}`,
  );
  const rewrites = groupBy(
    records.filter(({ intent }) => intent.kind === 'rewrite'),
    ({ intent }) => `${intent.tenant} ${intent.docId}`,
  );
  return [...rewrites].flatMap(([name, own]) => {
    const done = own.filter(({ key }) => key?.state === 'done');
    const successes = done.filter(({ key }) => key?.status === 200).length;
    const charged = charges.get(name)?.length ?? 0;
    if (charged >= successes && charged <= done.length) return [];
    const says = `${name}: ${charged} charges for ${successes} rewrites and ${done.length - successes} drafts`;
    return [{ rule: 'one charge', says, ...(own[0] && { intent: own[0].intent.id }) }];
  });
}

function total(entries: readonly LedgerState[]): number {
  return entries.reduce((sum, entry) => sum + entry.amount, 0);
}
