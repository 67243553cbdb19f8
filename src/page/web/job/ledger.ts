import type { Client } from '../../../client/index.ts';
import { el } from '../dom.ts';

const words = {
  credit: 'added',
  hold: 'set aside before the call',
  release: 'given back when it ended',
  charge: 'paid for what was used',
};

/** An amount of credits with its sign, in micros. */
export function formatMicros(micros: number): string {
  return `${micros < 0 ? '−' : '+'}${Math.abs(micros).toLocaleString('en')}`;
}

/** The ledger's entries of one job or rewrite, read when `refresh` is called. */
export function createSourceLedger(client: Client): {
  readonly element: HTMLElement;
  /** `isOurs` picks by the entry's source. */
  refresh(isOurs: (sourceId: string) => boolean): Promise<void>;
} {
  const rows = el('tbody');
  const balance = el('p', { class: 'balance' });
  const element = el(
    'section',
    { class: 'source-ledger', 'aria-label': 'The ledger' },
    el(
      'table',
      {},
      el('caption', {}, 'The ledger: what this did to the credits, in micros'),
      el('thead', {}, el('tr', {}, ...['Entry', 'Amount', 'Why'].map((title) => el('th', { scope: 'col' }, title)))),
      rows,
    ),
    balance,
  );
  return {
    element,
    async refresh(isOurs) {
      const { body } = await client.call('listLedger', { query: { limit: 100 } });
      const ours = body.items.filter(({ source_id }) => isOurs(source_id)).reverse();
      rows.replaceChildren(
        ...ours.map(({ kind, amount_micros }) =>
          el(
            'tr',
            { 'data-kind': kind },
            el('td', {}, kind),
            el('td', { class: 'number' }, formatMicros(amount_micros)),
            el('td', {}, words[kind]),
          ),
        ),
      );
      const count = (micros: number) => micros.toLocaleString('en');
      balance.textContent = `Balance ${count(body.balance_micros)}, of all calls held ${count(body.held_micros)}.`;
    },
  };
}
