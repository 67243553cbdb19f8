import type { Client } from '../../../client/index.ts';
import { type Copy, type Patience, type Run, sendCopies, sendCopy } from '../copies/send.ts';
import { actionButton, choice, el, field, status } from '../dom.ts';
import { leaveOut } from '../leave-out.ts';
import type { Page, Panel } from '../panel.ts';
import type { Tenant } from '../tenants.ts';

/** What is sent: fast, or slow because a model thinks in the middle. */
type Work = 'order' | 'rewrite';

/** Makes the simulated model take its time; a real one takes it for text. */
const slowInstruction = 'Make it friendlier. [[slow:2500]]';
const mostCopies = 5;

/** One intent, one key, sent as often as you like. */
export const sendTwice: Panel = {
  id: 'send-twice',
  title: 'Send twice',
  lead: 'Send the same order up to five times with one key. It is placed once; every other copy gets the first answer again.',
  mount(place, page) {
    place.append(...panelOf(page));
  },
};

function panelOf(page: Page): HTMLElement[] {
  const [first] = page.tenants;
  const other = page.tenants.find(({ tenant }) => tenant !== first.tenant);
  const log = page.createLog();
  let patience: Patience = 'try_again';
  const clientOf = (who: Tenant) => {
    const fetch = leaveOut('prefer', log.fetchFor(who.tenant), () => patience !== 'hold');
    return page.client(who, log, { fetch });
  };
  const clients = { mine: clientOf(first), other: other && clientOf(other) };

  const item = el('input', { type: 'text', value: 'pro-plan', maxlength: 200 });
  const cents = el('input', { type: 'number', value: 3000, min: 1, max: 1_000_000 });
  const key = el('input', { type: 'text', value: crypto.randomUUID(), spellcheck: 'false', autocomplete: 'off' });
  const copies = el('input', { type: 'range', min: 1, max: mostCopies, value: 2 });
  const copiesSaid = el('output', {}, '2 copies');
  copies.addEventListener('input', () => {
    copiesSaid.textContent = copies.value === '1' ? '1 copy' : `${copies.value} copies`;
  });
  let work: Work = 'order';
  let atOnce = true;
  /** The document that is rewritten under this key, at the tag it had. */
  let target: { readonly key: string; readonly id: string; readonly etag: string } | undefined;
  const newKey = () => {
    key.value = crypto.randomUUID();
  };

  const said = status();
  const fail = (error: unknown) => said.say(error instanceof Error ? error.message : String(error), 'bad');
  const rows = el('tbody');
  const table = el(
    'table',
    { class: 'copies', hidden: true },
    el('caption', {}, 'What each copy was told'),
    el(
      'thead',
      {},
      el('tr', {}, ...['Copy', 'Answers', 'Replay', 'Made'].map((name) => el('th', { scope: 'col' }, name))),
    ),
    rows,
  );
  const stored = el('p', { class: 'rows' });

  const runOf = async (client: Client, change: number): Promise<Run> => {
    if (work === 'order') {
      const body = { cents: cents.valueAsNumber + change, item: item.value };
      const intent = client.intent('createOrder', { body }, { key: key.value });
      return async (onAttempt, signal) => {
        const { body: order, replayed } = await client.run(intent, { onAttempt, signal });
        return { replayed, made: order.order_id };
      };
    }
    if (target?.key !== key.value) {
      const { body } = await client.call('createDoc', { body: { title: 'Reply', body: 'No refunds.' } });
      target = { key: key.value, id: body.id, etag: body.etag };
    }
    const { id, etag } = target;
    const instruction = change === 0 ? slowInstruction : `${slowInstruction} And shorter.`;
    const intent = client.intent(
      'rewriteDoc',
      { params: { id }, body: { instruction }, ifMatch: etag },
      { key: key.value },
    );
    return async (onAttempt, signal) => {
      const { body: doc, replayed } = await client.run(intent, { onAttempt, signal });
      return { replayed, made: `version ${doc.version}` };
    };
  };

  async function send(count: number, change = 0): Promise<void> {
    const before = await idsOf(clients.mine);
    const run = await runOf(clients.mine, change);
    table.hidden = false;
    rows.replaceChildren();
    said.say('');
    const lines = Array.from({ length: count }, (_, index) => {
      const line = el('tr');
      drawCopy(line, index, undefined);
      return line;
    });
    rows.append(...lines);
    const sent = await sendCopies(count, atOnce, async (index) => {
      const draw = (copy: Copy) => drawCopy(lines[index] as HTMLElement, index, copy);
      const copy = await sendCopy(run, patience, draw);
      draw(copy);
      return copy;
    });
    const [words, tone] = wordsOf(sent);
    said.say(words, tone);
    await showRows(clients.mine, first.tenant, before);
  }

  async function sendAsOther(): Promise<void> {
    if (clients.other === undefined || other === undefined) return;
    const before = await idsOf(clients.other);
    const run = await runOf(clients.other, 0);
    const line = el('tr');
    table.hidden = false;
    rows.replaceChildren(line);
    const draw = (copy: Copy) => drawCopy(line, 0, copy);
    draw(await sendCopy(run, patience, draw));
    said.say(`${other.tenant} has sent the same key, and it is a key of its own: tenants never meet.`, 'good');
    await showRows(clients.other, other.tenant, before);
  }

  /** Orders that were not there before, or the document's version: what the copies have done to the database. */
  async function showRows(client: Client, tenant: string, before: ReadonlySet<string>): Promise<void> {
    if (work === 'rewrite') {
      const { body } = await client.call('getDoc', { params: { id: (target as { id: string }).id } });
      stored.textContent = `The document is at version ${body.version}: written ${body.version - 1 === 1 ? 'once' : `${body.version - 1} times`}.`;
      return;
    }
    const added = [...(await idsOf(client))].filter((id) => !before.has(id));
    const many = added.length === 1 ? '1 new row' : `${added.length === 0 ? 'No' : added.length} new rows`;
    stored.textContent = `${many} in the orders of ${tenant}${added.length === 0 ? '' : `: ${added.join(', ')}`}.`;
  }

  async function idsOf(client: Client): Promise<ReadonlySet<string>> {
    const { body } = await client.call('listOrders', { query: { limit: 20 } });
    return new Set(body.items.map(({ order_id }) => order_id));
  }

  const whatChoice = () =>
    choice<Work>(
      'What',
      [
        ['order', 'the order: fast'],
        ['rewrite', 'a rewrite by a model: takes seconds'],
      ],
      work,
      (value) => {
        work = value;
        newKey();
      },
    );
  const whenChoice = () =>
    choice<'at_once' | 'in_turn'>(
      'When',
      [
        ['at_once', 'all at once'],
        ['in_turn', 'one after the other'],
      ],
      'at_once',
      (value) => {
        atOnce = value === 'at_once';
      },
    );

  return [
    el(
      'div',
      { class: 'split' },
      el(
        'div',
        { class: 'form' },
        el('div', { class: 'pair' }, field('Item', item), field('Price in cents', cents)),
        field('Idempotency-Key: one for one intent', key),
        el('div', { class: 'range' }, field('How often', copies), copiesSaid),
        el('div', { class: 'pair' }, whatChoice(), whenChoice()),
        choice<Patience>(
          'If the first still runs',
          [
            ['try_again', 'hear of it, and let the client try again'],
            ['give_up', 'hear of it, and stop'],
            ['hold', 'wait for its answer (Prefer: wait)'],
          ],
          patience,
          (value) => {
            patience = value;
          },
        ),
        el(
          'p',
          { class: 'actions' },
          actionButton('Send', () => send(copies.valueAsNumber), fail, { class: 'primary' }),
          actionButton('Change the body, same key', () => send(1, 1), fail),
          other && actionButton(`As ${other.tenant}, same key`, sendAsOther, fail),
          actionButton('New key', async () => newKey(), fail, { class: 'quiet' }),
        ),
      ),
      el('div', { class: 'result' }, said.element, table, stored),
    ),
    log.element,
  ];
}

function drawCopy(line: HTMLElement, index: number, copy: Copy | undefined): void {
  const codes = copy?.statuses.map((code) =>
    el('span', { class: `code s${Math.floor(code / 100)}` }, code === 0 ? '–' : String(code)),
  );
  line.replaceChildren(
    el('th', { scope: 'row' }, String(index + 1)),
    el('td', { class: 'tries' }, ...(codes ?? ['…'])),
    el('td', {}, copy?.replayed === true ? el('span', { class: 'mark' }, 'replayed') : undefined),
    el('td', {}, copy?.made === undefined ? '–' : el('code', { title: copy.made }, shortened(copy.made))),
  );
}

/** An id by its ends: long enough to see that two are the same. */
function shortened(made: string): string {
  return made.length > 20 ? `${made.slice(0, 4)}…${made.slice(-8)}` : made;
}

/** What happened to the copies, in a sentence. */
function wordsOf(sent: readonly Copy[]): [string, 'good' | 'bad' | 'plain'] {
  const refused = sent.find(({ problem }) => problem !== undefined)?.problem;
  const running = sent.filter(({ statuses }) => statuses.includes(409)).length;
  const replays = sent.filter(({ replayed }) => replayed).length;
  if (refused?.code === 'idempotency_key_reused') {
    const parts = Array.isArray(refused.differs) ? refused.differs.join(', ') : 'something';
    return [
      `409: this key stands for another request (what differs: ${parts}). Nothing was run. A new intent needs a new key.`,
      'bad',
    ];
  }
  if (refused?.code === 'request_in_progress') {
    return [
      `409: the first copy with this key still runs, so this one was not run as well. Send it again to get the answer.`,
      'plain',
    ];
  }
  if (refused !== undefined) return [String(refused.message ?? refused.code), 'bad'];
  const told =
    running === 0
      ? ''
      : ` ${running} of them ${running === 1 ? 'was' : 'were'} told 409 first: it still runs, ask again.`;
  const many = replays === 1 ? '1 is a replay' : `${replays} are replays`;
  return [
    `${sent.length === 1 ? 'One answer' : `${sent.length} answers`}; ${many}: the stored first answer again.${told}`,
    'good',
  ];
}
