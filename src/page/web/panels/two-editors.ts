import { RefusedError } from '../../../client/index.ts';
import { actionButton, choice, el, status } from '../dom.ts';
import { type Condition, createEditor, type Editor } from '../editors/editor.ts';
import { lostEdits, type Save } from '../editors/lost-edits.ts';
import { leaveOut } from '../leave-out.ts';
import type { Panel } from '../panel.ts';

/** What both editors begin with: lines enough for two people to change different ones. */
const firstText = 'Monday: write the announcement\nTuesday: test the payment page\nFriday: launch';

const conditions: readonly (readonly [Condition, string, string])[] = [
  ['tag', 'the tag that was read', 'the server checks that nobody was faster'],
  ['any', '*', 'write over whatever is there'],
  ['none', 'nothing', 'the server refuses: 428'],
];

/** Two people, one document, and what If-Match does between them. */
export const twoEditors: Panel = {
  id: 'two-editors',
  title: 'Two editors',
  lead: 'Both have read the same version. Save both: the slower one gets 412 instead of overwriting the other. Then switch If-Match to * and watch an edit get lost.',
  mount(place, page) {
    const [first, ...others] = page.tenants;
    const colleague = others.find(({ tenant }) => tenant === first.tenant) ?? first;
    const log = page.createLog();
    const said = status();
    const fail = (error: unknown) => said.say(error instanceof Error ? error.message : String(error), 'bad');
    let condition: Condition = 'tag';
    let saves: readonly Save[] = [];

    const onSaved = (save: Save) => {
      saves = [...saves, save];
      const lost = lostEdits(saves);
      if (lost.length === 0) {
        said.say('');
        return;
      }
      const edits = lost.map(({ by, lines }) => `the ${by.toLowerCase()} editor’s “${lines.join('” and “')}”`);
      said.say(
        `Lost: ${edits.join(', ')}. It was answered with 200, then overwritten with If-Match: *, and nobody was told.`,
        'bad',
      );
    };
    const editorOf = (side: string, who: typeof first): Editor => {
      const fetch = leaveOut('if-match', log.fetchFor(`${side.toLowerCase()}: ${who.sub}`), () => condition === 'none');
      const client = page.client(who, log, { fetch });
      return createEditor({ side, sub: who.sub, client, condition: () => condition, onSaved });
    };
    const left = editorOf('Left', first);
    const right = editorOf('Right', colleague);
    const editors = el('div', { class: 'editors' }, left.element, right.element);
    const client = page.client(first, log);

    const open = async () => {
      const name = `two-editors ${first.tenant}`;
      const known = sessionStorage.getItem(name);
      const id = (known !== null && (await isThere(known))) || (await create());
      sessionStorage.setItem(name, id);
      saves = [];
      await Promise.all([left.read(id), right.read(id)]);
      both.hidden = false;
      said.say('');
    };
    const create = async () =>
      (await client.call('createDoc', { body: { title: 'Launch plan', body: firstText } })).body.id;
    const isThere = async (id: string) => {
      try {
        return (await client.call('getDoc', { params: { id } })).body.id;
      } catch (error) {
        if (error instanceof RefusedError && error.status === 404) return undefined;
        throw error;
      }
    };

    const both = el(
      'p',
      { class: 'actions', hidden: true },
      actionButton(
        'Type into both',
        async () => {
          const at = new Date().toLocaleTimeString('en-GB');
          left.type((text) => text.replace(/^.*/, `Monday: tell the press (left, ${at})`));
          right.type((text) => text.replace(/.*$/, `Friday: launch at noon (right, ${at})`));
        },
        fail,
        { class: 'quiet' },
      ),
      actionButton('Save both at once', () => Promise.all([left.save(), right.save()]), fail),
    );
    place.append(
      el('p', { class: 'actions' }, actionButton('Open a document in both', open, fail)),
      choice('If-Match says', conditions, condition, (chosen) => {
        condition = chosen;
      }),
      editors,
      both,
      said.element,
      log.element,
    );
  },
};
