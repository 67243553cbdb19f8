import { type Client, type Doc, PreconditionFailedError, RefusedError } from '../../../client/index.ts';
import { applyOnTop, diffLines } from '../diff.ts';
import { actionButton, el, field, status } from '../dom.ts';
import type { Save } from './lost-edits.ts';

/** What an editor says of the version it means to change. */
export type Condition = 'tag' | 'any' | 'none';

/** What an editor is made from. */
export type EditorParts = {
  /** `Left`, `Right`. */
  readonly side: string;
  /** Who edits. */
  readonly sub: string;
  readonly client: Client;
  readonly condition: () => Condition;
  readonly onSaved: (save: Save) => void;
};

/** One of two editors of a document, with the version it has read. */
export type Editor = {
  readonly element: HTMLElement;
  /** Reads the document; what was typed goes. */
  read(id: string): Promise<void>;
  save(): Promise<void>;
  /** Types into it, as a person would. */
  type(change: (text: string) => string): void;
};

/** An editor without a document. */
export function createEditor({ side, sub, client, condition, onSaved }: EditorParts): Editor {
  let base: Doc | undefined;
  const text = el('textarea', { rows: 6, spellcheck: 'false', disabled: true });
  const tag = el('code', { class: 'tag' }, '–');
  const said = status();
  const conflict = el('div', { class: 'conflict', hidden: true });

  const show = (doc: Doc) => {
    base = doc;
    text.disabled = false;
    text.value = doc.body;
    tag.textContent = doc.etag;
    conflict.hidden = true;
    conflict.replaceChildren();
  };
  const fail = (error: unknown) => said.say(error instanceof Error ? error.message : String(error), 'bad');
  const saved = (doc: Doc, from: Doc, mine: string) => {
    show(doc);
    onSaved({ by: side, from: from.version, version: doc.version, base: from.body, text: mine });
  };

  async function read(id: string): Promise<void> {
    const { body, fromMemory } = await client.call('getDoc', { params: { id } });
    show(body);
    const words = `304: version ${body.version} is the newest, and this editor has it already. It was not sent again.`;
    said.say(fromMemory ? words : `Read version ${body.version}.`);
  }

  async function save(): Promise<void> {
    if (base === undefined) return;
    const from = base;
    const mine = text.value;
    const ifMatch = condition() === 'any' ? '*' : from.etag;
    try {
      const input = { params: { id: from.id }, body: { title: from.title, body: mine }, ifMatch };
      const { body } = await client.call('putDoc', input, { wantsCurrent: true });
      saved(body, from, mine);
      said.say(`200: saved as version ${body.version}.`, 'good');
    } catch (error) {
      if (error instanceof PreconditionFailedError) showConflict(from, mine, error);
      else if (error instanceof RefusedError && error.status === 428) {
        said.say('428: say which version you mean to change. Without that, nothing is written.', 'bad');
      } else throw error;
    }
  }

  function showConflict(from: Doc, mine: string, { problem }: PreconditionFailedError): void {
    const current = problem.current as Doc | undefined;
    const { changed_by: by, changed_at: at, current_version: version } = problem;
    const when = typeof at === 'string' ? ` at ${new Date(at).toLocaleTimeString('en-GB')}` : '';
    said.say(
      `412: somebody was faster. ${by} saved version ${version}${when}; this editor had read version ${from.version}. Nothing was overwritten, and what you typed is still here.`,
      'bad',
    );
    if (current === undefined) return;
    conflict.hidden = false;
    conflict.replaceChildren(
      el('h4', {}, 'From theirs to yours'),
      diffElement(current.body, mine),
      el(
        'p',
        { class: 'actions' },
        actionButton('Apply mine on top', () => onTop(from, mine), fail),
        actionButton('Take theirs', async () => takeTheirs(current), fail, { class: 'quiet' }),
      ),
    );
  }

  /** Lays what was typed over whatever is the newest, again if somebody is faster again. */
  async function onTop(from: Doc, mine: string): Promise<void> {
    let contested = false;
    let below = from;
    const doc = await client.updateDoc(from.id, (current) => {
      below = current;
      const applied = applyOnTop(from.body, mine, current.body);
      contested = applied.contested;
      return { body: applied.text };
    });
    saved(doc, below, doc.body);
    said.say(
      contested
        ? `Version ${doc.version}: both had changed the same lines, and yours are the ones that stand.`
        : `Version ${doc.version}: both edits are in it.`,
      'good',
    );
    text.focus();
  }

  function takeTheirs(current: Doc): void {
    show(current);
    said.say(`Version ${current.version}: theirs.`);
    text.focus();
  }

  return {
    element: el(
      'section',
      { class: 'editor', 'aria-label': `${side} editor` },
      field(`${side} editor, ${sub}`, text),
      el('p', { class: 'base' }, 'Has read ', tag),
      el(
        'p',
        { class: 'actions' },
        actionButton('Save', save, fail),
        actionButton('Read again', async () => base && read(base.id), fail, { class: 'quiet' }),
      ),
      said.element,
      conflict,
    ),
    read,
    save,
    type(change) {
      text.value = change(text.value);
    },
  };
}

function diffElement(before: string, after: string): HTMLElement {
  const signs = { same: ' ', removed: '−', added: '+' };
  const words = { same: '', removed: 'theirs: ', added: 'yours: ' };
  return el(
    'ul',
    { class: 'diff' },
    ...diffLines(before, after).map(({ kind, text }) =>
      el(
        'li',
        { class: kind },
        el('span', { class: 'sign', 'aria-hidden': 'true' }, signs[kind]),
        el('span', { class: 'hidden' }, words[kind]),
        text,
      ),
    ),
  );
}
