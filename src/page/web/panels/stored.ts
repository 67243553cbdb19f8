import { type Client, RefusedError } from '../../../client/index.ts';
import { el } from '../dom.ts';
import { lookWhileSeen } from '../live.ts';
import type { Page, Panel } from '../panel.ts';
import { onUsedKey, type UsedKey, usedKeys } from '../used-keys.ts';

/** What the server knows of a key; undefined: nothing, as if it had never been used. */
type KeyState = Awaited<ReturnType<typeof readKey>>;

/** A key that will hardly change is looked up again after so many looks. */
const restingLooks = 10;

/** A look must not go on trying into the next one. Milliseconds. */
const patience = { budgetMs: 1_500 };

const stateWords = {
  in_progress: 'running',
  released: 'failed: free for the same request',
  done: 'answer stored',
  expired: 'answer gone: refused, not run again',
};

/** The keys of this tab and the ledger, as the server has them. */
export const stored: Panel = {
  id: 'stored',
  title: 'What is stored',
  lead: 'Use the panels above and watch what stays behind: one row for each key, one entry for each movement of money. A key that was refused with 4xx leaves no row.',
  mount(place, page) {
    const log = page.createLog();
    const clients = new Map(
      // Of two people of one tenant the first.
      page.tenants.toReversed().map((tenant) => [tenant.tenant, page.client(tenant, log, { patience })]),
    );
    const keys = keysTable(clients);
    const ledger = ledgerOf(page, clients);
    const live = el('input', { type: 'checkbox', id: 'stored-live', checked: true });
    place.append(
      el('p', { class: 'check' }, live, el('label', { for: 'stored-live' }, 'Look every two seconds')),
      keys.element,
      ledger.element,
      log.element,
    );
    const look = async () => {
      await Promise.all([keys.refresh(), ledger.refresh()]);
    };
    const lookNow = lookWhileSeen(place, look, () => live.checked);
    live.addEventListener('change', lookNow);
    onUsedKey(lookNow);
  },
};

/** The keys with what is known of each. */
function keysTable(clients: ReadonlyMap<string, Client>) {
  const known = new Map<string, { readonly state: KeyState; readonly look: number; readonly isSettled: boolean }>();
  let looks = 0;
  const rows = el('tbody');
  const empty = el('p', { class: 'empty' }, 'No key was sent from this tab yet.');
  const table = el(
    'table',
    { class: 'keys' },
    el('caption', {}, 'Keys that this tab has sent, the newest first'),
    headRow('Key', 'Sent with', 'State', 'Attempt', 'Kept until'),
    rows,
  );
  const nameOf = ({ tenant, key }: UsedKey) => `${tenant} ${key}`;
  const refreshOne = async (used: UsedKey) => {
    const before = known.get(nameOf(used));
    const client = clients.get(used.tenant);
    if (client === undefined || (before?.isSettled === true && looks - before.look < restingLooks)) return;
    const state = await readKey(client, used.key);
    // At the first look the request may still have been on its way; a key that is not there at the second was refused.
    const isSettled = state === undefined ? before !== undefined : /^(done|expired)$/.test(state.state);
    known.set(nameOf(used), { state, look: looks, isSettled });
  };
  const draw = () => {
    const used = usedKeys();
    empty.hidden = used.length > 0;
    table.hidden = used.length === 0;
    rows.replaceChildren(...used.map((each) => keyRow(each, known.get(nameOf(each)))));
  };
  draw();
  return {
    element: el('div', { class: 'table', role: 'region', 'aria-label': 'Keys', tabindex: '0' }, empty, table),
    async refresh() {
      looks += 1;
      await Promise.allSettled(usedKeys().map(refreshOne));
      draw();
    },
  };
}

async function readKey(client: Client, key: string) {
  try {
    return (await client.call('getIdempotencyKey', { params: { key } })).body;
  } catch (error) {
    if (error instanceof RefusedError && error.status === 404) return undefined;
    throw error;
  }
}

function keyRow({ tenant, key, line }: UsedKey, known: { readonly state: KeyState } | undefined): HTMLElement {
  const state = known?.state;
  const words = known === undefined ? 'not looked up yet' : state === undefined ? 'no row' : stateWords[state.state];
  return el(
    'tr',
    { 'data-key': key, 'data-state': state?.state ?? 'none' },
    el('th', { scope: 'row' }, el('code', {}, key), ' ', el('small', {}, tenant)),
    el('td', {}, el('code', {}, line)),
    el('td', {}, words, state?.status == null ? undefined : el('small', {}, ` ${state.status}`)),
    el('td', {}, state === undefined ? '–' : String(state.attempt)),
    el('td', {}, state === undefined ? '–' : el('time', { datetime: state.expires_at }, shortTime(state.expires_at))),
  );
}

/** The ledger of the first tenant, and how often it had to be sent. */
function ledgerOf({ tenants }: Page, clients: ReadonlyMap<string, Client>) {
  const [{ tenant }] = tenants;
  const client = clients.get(tenant) as Client;
  const rows = el('tbody');
  const balance = el('p', { class: 'balance' });
  const asked = el('p', { class: 'asked' });
  let looks = 0;
  let unchanged = 0;
  return {
    element: el(
      'div',
      { class: 'table', role: 'region', 'aria-label': 'Ledger', tabindex: '0' },
      balance,
      el(
        'table',
        { class: 'ledger' },
        el('caption', {}, `The ledger of ${tenant}, in micros: the newest entries`),
        headRow('Entry', 'Amount', 'For', 'When'),
        rows,
      ),
      asked,
    ),
    async refresh() {
      const { body, fromMemory } = await client.call('listLedger', { query: { limit: 8 } });
      looks += 1;
      if (fromMemory) unchanged += 1;
      asked.textContent = `Looks so far: ${looks}. Answered with 304, as the newest was here already and need not be sent again: ${unchanged}.`;
      if (fromMemory && rows.childElementCount > 0) return;
      const { balance_micros, held_micros, items } = body;
      balance.textContent = `Balance ${balance_micros.toLocaleString('en')} micros, ${held_micros.toLocaleString('en')} of it held for calls that run.`;
      rows.replaceChildren(
        ...items.map((entry) =>
          el(
            'tr',
            { 'data-kind': entry.kind },
            el('th', { scope: 'row' }, entry.kind),
            el('td', { class: 'number' }, entry.amount_micros.toLocaleString('en', { signDisplay: 'always' })),
            el('td', {}, `${entry.source_type} `, el('code', {}, entry.source_id.slice(-8))),
            el('td', {}, el('time', { datetime: entry.created_at }, shortTime(entry.created_at))),
          ),
        ),
      );
    },
  };
}

function headRow(...names: readonly string[]): HTMLElement {
  return el('thead', {}, el('tr', {}, ...names.map((name) => el('th', { scope: 'col' }, name))));
}

const times = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
});

function shortTime(at: string): string {
  return times.format(new Date(at));
}
