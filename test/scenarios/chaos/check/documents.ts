import { type History, isSuccess } from '../history.ts';
import type { DocState, Snapshot } from '../snapshot.ts';
import { markersIn, type Record, type Violation } from './record.ts';

/** Kinds whose success answer is a document. */
const documentKinds = new Set(['new_doc', 'put_new', 'edit', 'patch', 'unkeyed_edit', 'rewrite']);

/** What is known of one document: its text at each version that anybody saw, and whose edit the version was. */
type Life = { readonly bodies: Map<number, string>; readonly authors: Map<number, number> };

/**
 * Nobody's edit is overwritten: each version has one text and one author and follows the version its author had read, and every
 * mark that was ever there is still there.
 */
export function checkDocuments(history: History, records: readonly Record[], snapshot: Snapshot): Violation[] {
  const found: Violation[] = [];
  const lives = new Map<string, Life>();
  const lifeOf = (tenant: string, id: string) => {
    const name = `${tenant} ${id}`;
    const life = lives.get(name) ?? { bodies: new Map(), authors: new Map() };
    lives.set(name, life);
    return life;
  };
  const see = (life: Life, version: number, body: string, intent?: number) => {
    const before = life.bodies.get(version);
    if (before !== undefined && before !== body) {
      const says = `version ${version} was shown with two texts`;
      found.push({ rule: 'one text a version', says, ...(intent === undefined ? {} : { intent }) });
    }
    life.bodies.set(version, body);
  };

  for (const { tenant, docId, version, body } of history.seen) see(lifeOf(tenant, docId), version, body);
  for (const { intent, tries } of records) {
    if (!documentKinds.has(intent.kind)) continue;
    for (const { end } of tries) {
      if (!isSuccess(end)) continue;
      const doc = JSON.parse(end.body) as { id: string; version: number; body: string };
      const life = lifeOf(intent.tenant, doc.id);
      see(life, doc.version, doc.body, intent.id);
      const author = life.authors.get(doc.version);
      if (author !== undefined && author !== intent.id) {
        const says = `intent ${author} was told that version ${doc.version} is its own, too`;
        found.push({ rule: 'no lost edit', says, intent: intent.id });
      }
      life.authors.set(doc.version, intent.id);
      if (doc.version !== (intent.baseVersion ?? 0) + 1) {
        const says = `it was made from version ${intent.baseVersion} and became version ${doc.version}`;
        found.push({ rule: 'no lost edit', says, intent: intent.id });
      }
    }
  }
  for (const doc of snapshot.docs) if (!doc.isDeleted) found.push(...checkChain(doc, lifeOf(doc.tenant, doc.id)));
  return found;
}

/** From each version that was seen to the next, up to the last: nothing goes missing, and each version adds one mark. */
function checkChain(doc: DocState, { bodies, authors }: Life): Violation[] {
  const found: Violation[] = [];
  const versions = [...bodies.keys()].sort((a, b) => a - b);
  const last = versions.at(-1) ?? 0;
  if (last > doc.version) {
    found.push({
      rule: 'no lost edit',
      says: `${doc.id}: version ${last} was shown, ${doc.version} is there`,
      ...by(last),
    });
  }
  const final = new Set(markersIn(doc.body));
  for (const version of versions) {
    const missing = markersIn(bodies.get(version) ?? '').filter((mark) => !final.has(mark));
    if (missing.length > 0) {
      const says = `${doc.id}: ${missing.join(' ')} of version ${version} is not in version ${doc.version}`;
      found.push({ rule: 'no lost edit', says, intent: Number(missing[0]?.replaceAll('#', '')) });
      break;
    }
  }
  if (final.size !== doc.version) {
    found.push({
      rule: 'no lost edit',
      says: `${doc.id}: ${doc.version} versions hold ${final.size} marks`,
      ...by(doc.version),
    });
  }
  return found;

  function by(version: number): { intent?: number } {
    const author = authors.get(version);
    return author === undefined ? {} : { intent: author };
  }
}
