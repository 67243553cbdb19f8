import { type AttemptReport, type Doc, PreconditionFailedError, RefusedError } from '../../../client/index.ts';
import { actionButton, el, field, status } from '../dom.ts';
import { createSourceLedger } from '../job/ledger.ts';
import { topUpMicros, wordsOf, wordsOfTry } from '../job/text.ts';
import type { Page, Panel } from '../panel.ts';
import { createChoice } from '../rewrite/choice.ts';
import { forget, type RewriteMemory, recall, remember } from '../rewrite/memory.ts';

/** Makes the simulated model take its time. A real model takes it for a part of the instruction. */
const slowly = ' [[slow:12000]] [[tokens:48]]';
const title = 'A text to rewrite';
const firstText = `Retries are dangerous, people say.
They mean requests that are sent again without a name.`;

/** A model's edit against a person's. */
export const rewrite: Panel = {
  id: 'rewrite',
  title: 'Rewrite',
  lead: 'Let the model rewrite the text, and while it thinks, change the text yourself and save. Your edit wins; what the model wrote is kept as a draft.',
  mount(place, page) {
    place.append(...panelOf(page));
  },
};

function panelOf({ tenants: [who], client, createLog }: Page): HTMLElement[] {
  const log = createLog();
  const server = client(who, log);
  const say = status();
  const ledger = createSourceLedger(server);
  const choice = createChoice(failed);
  const text = el('textarea', { rows: '6' });
  text.value = firstText;
  const version = el('p', { class: 'base' }, 'Not stored yet.');
  const instruction = el('input', { type: 'text', value: 'Make it friendlier.', maxlength: '500' });
  const slow = el('input', { type: 'checkbox', id: 'rewrite-slowly', checked: true });
  const topUp = actionButton('Add credits and go on', addAndGoOn, failed, { class: 'top-up', hidden: true });

  /** The version that this tab has read or written last. */
  let base: Doc | undefined;
  let memory = recall(who.tenant);
  let isThinking = false;
  if (memory !== undefined) void goOn(memory).catch(failed);

  return [
    el(
      'div',
      { class: 'split' },
      el(
        'div',
        {},
        field('The document', text),
        version,
        field('What the model is to do', instruction),
        el(
          'p',
          { class: 'check' },
          slow,
          el(
            'label',
            { for: 'rewrite-slowly' },
            'Slowly, so that there is time to type (the simulated model takes 12 s)',
          ),
        ),
        el(
          'div',
          { class: 'actions' },
          actionButton('Let the model rewrite it', rewriteIt, failed, { class: 'primary' }),
          actionButton('Save', save, failed),
          topUp,
        ),
        say.element,
      ),
      el(
        'div',
        {},
        ledger.element,
        el('h3', {}, 'While the model thinks'),
        el(
          'ul',
          { class: 'facts' },
          el(
            'li',
            {},
            'no database connection, no transaction and no lock is held: the text can be saved at any time;',
          ),
          el('li', {}, 'the version it has read is in If-Match, and is looked at again in the statement that writes;'),
          el('li', {}, 'a reload or a lost answer does no harm: the same key brings the same answer, draft included.'),
        ),
      ),
    ),
    choice.element,
    log.element,
  ];

  /** After a reload: the text as it is, and a rewrite whose answer was not seen is asked for again under its key. */
  async function goOn(kept: RewriteMemory): Promise<void> {
    const { body } = await server.call('getDoc', { params: { id: kept.docId } });
    show(body);
    await refreshLedger();
    if (kept.intent !== undefined) {
      say.say('The page was reloaded while the model wrote: the same key asks for the same answer.');
      await run(kept.intent);
    }
  }

  async function save(): Promise<void> {
    const saved = await stored();
    if (saved === undefined) return;
    const { version: now } = saved;
    if (isThinking)
      say.say(`Saved as version ${now}, while the model writes about an older one. Wait for its answer.`, 'good');
    else say.say(`Saved as version ${now}.`, 'good');
  }

  /** The document with what is typed in it; undefined when somebody else's newer version stands in the way. */
  async function stored(): Promise<Doc | undefined> {
    const body = { title, body: text.value };
    if (base === undefined) {
      const made = await server.call('createDoc', { body }, { onAttempt: tellOfTry });
      keep({ tenant: who.tenant, docId: made.body.id });
      return adopt(made.body);
    }
    if (text.value === base.body) return base;
    const { id, etag } = base;
    try {
      const written = await server.call(
        'putDoc',
        { params: { id }, body, ifMatch: etag },
        { wantsCurrent: true, onAttempt: tellOfTry },
      );
      return adopt(written.body);
    } catch (error) {
      if (!(error instanceof PreconditionFailedError)) throw error;
      offerMine(
        error.problem.current as Doc,
        '412: the text was changed since it was read here. Yours is not saved yet.',
      );
      return undefined;
    }
  }

  async function rewriteIt(): Promise<void> {
    choice.close();
    const doc = await stored();
    if (doc === undefined) return;
    const words = (instruction.value.trim() || 'Rewrite it.') + (slow.checked ? slowly : '');
    const intent = server.intent('rewriteDoc', {
      params: { id: doc.id },
      ifMatch: doc.etag,
      body: { instruction: words },
    });
    keep({ tenant: who.tenant, docId: doc.id, intent });
    say.say(`The model reads version ${doc.version} and thinks. Change the text now, and save.`);
    await run(intent);
  }

  async function run(intent: NonNullable<RewriteMemory['intent']>): Promise<void> {
    isThinking = true;
    topUp.hidden = true;
    try {
      const { body: doc, replayed } = await server.run(intent, { wantsCurrent: true, onAttempt: tellOfTry });
      settled(doc.id);
      rewritten(doc, replayed);
    } catch (error) {
      if (!(error instanceof PreconditionFailedError)) throw error;
      const docId = memory?.docId ?? '';
      settled(docId);
      // Read anew: a refusal that is replayed tells of the version that was there then.
      const { body: now } = await server.call('getDoc', { params: { id: docId } });
      const { draft } = error.problem;
      if (typeof draft === 'string') offerDraft(now, draft);
      else refusedUnasked(now);
    } finally {
      isThinking = false;
      await refreshLedger();
    }
  }

  function rewritten(doc: Doc, replayed: boolean): void {
    if (base !== undefined && text.value !== base.body) {
      offerMine(
        doc,
        `200: version ${doc.version} is the model’s. You have typed meanwhile, so your text was left alone.`,
      );
      return;
    }
    show(doc);
    const how = replayed ? 'The stored answer, replayed' : '200';
    say.say(`${how}: nobody changed the text meanwhile, so the model’s is version ${doc.version} now.`, 'good');
  }

  /** Refused before the model was asked: the tag was stale already. */
  function refusedUnasked(now: Doc): void {
    show(now);
    say.say(
      `412: this tab had not seen version ${now.version} by ${now.updated_by}. The model was not asked and nothing is paid. The newer text is shown now.`,
      'bad',
    );
  }

  /** The edit that was saved meanwhile stays; the draft can be written over it, as a decision and with its tag. */
  function offerDraft(now: Doc, draft: string): void {
    if (text.value === base?.body) show(now);
    say.say(
      `412: version ${now.version} was saved while the model wrote. It was not overwritten, and the draft is not lost.`,
      'bad',
    );
    choice.offer({
      mine: {
        title: 'The model’s draft, as far as it had come',
        text: draft,
        label: 'Use the draft',
        take: () => writeOver(now, draft, 'The draft'),
      },
      theirs: {
        title: `What is there now: version ${now.version} of ${now.updated_by}`,
        text: now.body,
        label: 'Drop it',
        take: async () => {
          choice.close();
          say.say(`The draft is dropped, version ${now.version} stays. The call is paid all the same: see the ledger.`);
        },
      },
    });
  }

  function offerMine(now: Doc, words: string): void {
    const mine = text.value;
    say.say(words, 'bad');
    choice.offer({
      mine: {
        title: 'What you have typed',
        text: mine,
        label: 'Save mine over it',
        take: () => writeOver(now, mine, 'Yours'),
      },
      theirs: {
        title: `What is there now: version ${now.version} of ${now.updated_by}`,
        text: now.body,
        label: 'Take that',
        take: async () => {
          choice.close();
          show(now);
          say.say(`Version ${now.version} stays.`);
        },
      },
    });
  }

  /** With the tag of what was shown: if somebody is faster once more, that is a 412 again and no loss. */
  async function writeOver(now: Doc, words: string, whose: string): Promise<void> {
    choice.close();
    text.value = words;
    base = now;
    const saved = await stored();
    if (saved !== undefined)
      say.say(
        `${whose} was written over version ${now.version}, with its tag: now it is version ${saved.version}.`,
        'good',
      );
  }

  function tellOfTry(report: AttemptReport): void {
    const words = wordsOfTry(report);
    if (words !== undefined) say.say(words, 'bad');
  }

  /** 402 leaves the key as if never used: the same intent may run once there is credit. */
  async function addAndGoOn(): Promise<void> {
    await server.call('addCredits', { body: { amount_micros: topUpMicros } });
    topUp.hidden = true;
    say.say('The credits are there. The model thinks.');
    if (memory?.intent !== undefined) await run(memory.intent);
  }

  function failed(error: unknown): void {
    if (error instanceof RefusedError && error.code === 'insufficient_credits') {
      say.say(
        '402: the credits do not cover this call. Nothing was started, and the key is still good: add credits and go on.',
        'bad',
      );
      topUp.hidden = false;
      return;
    }
    if (error instanceof RefusedError && memory !== undefined) {
      // Gone with its document, or refused for good: the next click begins anew.
      if (error.code === 'not_found') {
        base = undefined;
        memory = undefined;
        forget();
        version.textContent = 'Not stored yet.';
      } else settled(memory.docId);
    }
    say.say(wordsOf(error), 'bad');
  }

  function show(doc: Doc): void {
    adopt(doc);
    text.value = doc.body;
  }

  /** Knows of the version, and leaves alone what is being typed. */
  function adopt(doc: Doc): Doc {
    base = doc;
    version.textContent = `Version ${doc.version}, by ${doc.updated_by}, ETag ${doc.etag}`;
    return doc;
  }

  function settled(docId: string): void {
    keep({ tenant: who.tenant, docId });
  }

  function keep(next: RewriteMemory): void {
    memory = next;
    remember(next);
  }

  async function refreshLedger(): Promise<void> {
    const id = memory?.docId;
    if (id !== undefined) await ledger.refresh((source) => source.startsWith(`${id}:`));
  }
}
