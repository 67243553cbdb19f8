import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { IntentKind, NetworkFault } from './history.ts';
import { type Intent, isRefusal, isSuccess, markerOf, type Try } from './history.ts';
import { drawKind, drawTenant, type ModelFault, modelFaults, needsDoc, promptOf, type SharedDoc } from './intents.ts';
import type { Random } from './random.ts';
import { readDoc } from './reader.ts';
import { intents as make, type Request, type SenderParts, sendCopy } from './sender.ts';
import { boundMsOf, budgetMs } from './timing.ts';

/** What the clients of a run share. */
export type WorkParts = SenderParts & {
  readonly random: Random;
  /** The log of intents; the index is the id. */
  readonly intents: Intent[];
  triesOf(intent: number): readonly Try[];
  readonly docs: SharedDoc[];
  /** Whether the network may do this to a request. */
  isWanted(kind: NetworkFault): boolean;
  /** Which trouble the model is asked to make, if any. */
  modelTrouble(): ModelFault | undefined;
  onSeen(tenant: string, doc: { id: string; version: number; body: string }): void;
};

/** An intent with the request that carries it out. */
export type Wanted = { readonly intent: Intent; readonly request: Request };

/** Clients draw edits of a document at most so often: its body grows with each. */
const maxEdits = 25;
/** Share of intents that are sent more than once. */
const copiedShare = 0.3;
/** Share of clients that wait for an answer no longer than this, in milliseconds: shorter than what stands still stands still. */
const impatientShare = 0.5;
const impatientMs = 900;

/** One client: wants one thing after the other until `stop`. */
export async function runClient(parts: WorkParts, stop: AbortSignal, again: (wanted: Wanted) => void): Promise<void> {
  const { random } = parts;
  while (!stop.aborted) {
    const kind = drawKind(random, parts.docs.length > 0);
    const wanted = await want(parts, kind);
    if (wanted === undefined) {
      await sleep(100);
      continue;
    }
    await send(parts, wanted);
    if (!isSettled(parts, wanted.intent)) again(wanted);
    if (wanted.intent.kind === 'new_doc') adopt(parts, wanted.intent);
    if (kind === 'remove' && wanted.intent.kind === 'put_new') {
      const removal = removalOf(parts, wanted.intent);
      if (removal !== undefined) {
        await send(parts, removal);
        if (!isSettled(parts, removal.intent)) again(removal);
      }
    }
    await sleep(random.between(0, 60));
  }
}

/** Whether the client knows how it ended. */
export function isSettled(parts: Pick<WorkParts, 'triesOf'>, intent: Intent): boolean {
  return parts.triesOf(intent.id).some(({ end }) => isSuccess(end) || isRefusal(end));
}

/** Makes the next intent, or nothing when what it is about can't be read now. */
async function want(parts: WorkParts, kind: IntentKind): Promise<Wanted | undefined> {
  const { random, intents } = parts;
  const doc = needsDoc(kind) ? random.pick(parts.docs) : undefined;
  const tenant = doc?.tenant ?? drawTenant(random, kind);
  const base = doc && (await readDoc(parts, doc));
  if (doc !== undefined && base === undefined) return undefined;
  const id = intents.length;
  const body = markerOf({ id });
  const intent = (more: Partial<Intent> = {}): Intent => {
    const made: Intent = { id, kind, tenant, key: `k-${id}-${randomUUID()}`, ...more };
    intents.push(made);
    return made;
  };
  const keyed = (made: Intent, name: Parameters<typeof make.intent>[0], input: object): Wanted => ({
    intent: made,
    request: { keyed: make.intent(name, input as never, { key: made.key as string }) },
  });
  const trouble = parts.modelTrouble();
  const directive = trouble === undefined ? '' : random.pick(modelFaults[trouble]);
  if (doc !== undefined && base !== undefined) {
    countEdit(parts, doc);
    const at = { docId: doc.id, baseVersion: base.version };
    const params = { id: doc.id };
    const ifMatch = base.tag;
    const content = { title: base.title, body: `${base.body} ${body}` };
    switch (kind) {
      case 'edit':
        return keyed(intent(at), 'putDoc', { params, ifMatch, body: content });
      case 'patch':
        return keyed(intent(at), 'patchDoc', { params, ifMatch, body: { body: content.body } });
      case 'unkeyed_edit':
        return {
          intent: intent({ ...at, key: undefined }),
          request: { procedure: 'putDoc', input: { params, ifMatch, body: content } },
        };
      default: {
        const instruction = promptOf({ id }, directive, random.between(30, 900));
        return keyed(intent(at), 'rewriteDoc', { params, ifMatch, body: { instruction } });
      }
    }
  }
  switch (kind) {
    case 'order':
      return keyed(intent(), 'createOrder', { body: { cents: 1 + random.between(0, 9_999), item: body } });
    case 'credit': {
      const made = intent({ amountMicros: 20_001 + id });
      return keyed(made, 'addCredits', { body: { amount_micros: made.amountMicros } });
    }
    case 'job': {
      const prompt = promptOf({ id }, directive, random.between(20, 500));
      return keyed(intent(), 'createJob', { body: { kind: 'generate', prompt, max_tokens: 64 } });
    }
    case 'new_doc':
      return keyed(intent(), 'createDoc', { body: { title: 'A document', body } });
    default: {
      const docId = `own-${id}`;
      const made = intent({ kind: 'put_new', docId, baseVersion: 0 });
      return keyed(made, 'putDoc', { params: { id: docId }, create: true, body: { title: 'A document', body } });
    }
  }
}

/** How the copies of an intent are sent: one after the other, side by side, or again because the answer to the first was lost. */
async function send(parts: WorkParts, wanted: Wanted): Promise<void> {
  const { random } = parts;
  const { intent } = wanted;
  const copy = (n: number, more: { firstFault?: NetworkFault; signal?: AbortSignal; budgetMs?: number } = {}) => {
    // The impatient go to another server while the first still runs.
    const limitMs = random.chance(impatientShare) ? impatientMs : boundMsOf(intent.kind);
    return sendCopy(parts, intent, wanted.request, { copy: n, calm: false, budgetMs, limitMs, ...more });
  };
  const way = random.next();
  if (way > copiedShare) {
    // Some clients go away, and nobody asks again during the storm.
    const leaves = random.chance(0.05) ? { signal: AbortSignal.timeout(random.between(1, 400)) } : {};
    return await copy(0, leaves);
  }
  const copies = random.between(2, 5);
  if (way < copiedShare / 3) {
    await Promise.all(Array.from({ length: copies }, (_, n) => copy(n)));
  } else if (way < (copiedShare * 2) / 3) {
    await Promise.all(
      Array.from({ length: copies }, async (_, n) => {
        await sleep(n === 0 ? 0 : random.between(0, 400));
        await copy(n);
      }),
    );
  } else {
    // One try whose answer is lost; the client comes back with nothing but what it saved.
    const firstFault = parts.isWanted('drop_answer') ? 'drop_answer' : 'none';
    await copy(0, { firstFault, budgetMs: 1 });
    for (let n = 1; n < copies; n += 1) await copy(n);
  }
}

/** A document whose creation was answered is edited from now on. */
function adopt(parts: WorkParts, intent: Intent): void {
  const made = parts.triesOf(intent.id).find(({ end }) => isSuccess(end))?.end;
  if (made?.kind !== 'answered') return;
  const { id } = JSON.parse(made.body) as { id: string };
  parts.docs.push({ tenant: intent.tenant, id, edits: 0 });
}

function countEdit(parts: WorkParts, doc: SharedDoc): void {
  doc.edits += 1;
  if (doc.edits >= maxEdits) parts.docs.splice(parts.docs.indexOf(doc), 1);
}

/** Deletes the document that the intent has made, with the tag of its first version. */
function removalOf(parts: WorkParts, made: Intent): Wanted | undefined {
  const success = parts.triesOf(made.id).find(({ end }) => isSuccess(end))?.end;
  if (success?.kind !== 'answered') return undefined;
  const { etag } = JSON.parse(success.body) as { etag: string };
  const id = parts.intents.length;
  const key = parts.random.chance(0.5) ? `k-${id}-${randomUUID()}` : undefined;
  const docId = made.docId as string;
  const intent: Intent = { id, kind: 'remove', tenant: made.tenant, key, docId, baseVersion: 1 };
  parts.intents.push(intent);
  const input = { params: { id: docId }, ifMatch: etag };
  return {
    intent,
    request:
      key === undefined ? { procedure: 'deleteDoc', input } : { keyed: make.intent('deleteDoc', input, { key }) },
  };
}
