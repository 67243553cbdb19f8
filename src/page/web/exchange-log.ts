import { el } from './dom.ts';
import { curlOf, type Exchange, marksOf, observedFetch } from './exchange.ts';
import { meaningOf } from './meanings.ts';
import { notingKeys } from './used-keys.ts';

/** The list of what a panel has sent, the newest first, each to be opened and copied. */
export type ExchangeLog = {
  readonly element: HTMLElement;
  /** A `fetch` whose exchanges are shown here; `who` stands before each. */
  fetchFor(who: string): typeof globalThis.fetch;
  clear(): void;
};

/** Exchanges that stay in the list. */
const mostShown = 30;

/** An empty log. */
export function createExchangeLog(label = 'What went over the wire'): ExchangeLog {
  const list = el('ol', { class: 'exchanges', 'aria-label': label, tabindex: '0' });
  const empty = el('p', { class: 'empty' }, 'Nothing yet.');
  const element = el('section', { class: 'wire', 'aria-label': label }, el('h3', {}, label), empty, list);
  return {
    element,
    fetchFor: (who) =>
      notingKeys(
        observedFetch((exchange) => {
          empty.hidden = true;
          list.prepend(itemOf(who, exchange));
          while (list.children.length > mostShown) list.lastElementChild?.remove();
        }),
      ),
    clear() {
      list.replaceChildren();
      empty.hidden = false;
    },
  };
}

function itemOf(who: string, exchange: Exchange): HTMLElement {
  const { method, url, status, ms } = exchange;
  const { pathname, search } = new URL(url);
  const meaning = meaningOf(exchange);
  const kind = status === undefined ? 'none' : `s${Math.floor(status / 100)}`;
  return el(
    'li',
    { class: 'exchange', 'data-status': status ?? 'none' },
    el(
      'details',
      {},
      el(
        'summary',
        {},
        el('span', { class: `code ${kind}` }, status === undefined ? '–' : String(status)),
        ' ',
        el('span', { class: 'line' }, `${method} ${pathname}${search}`),
        ...marksOf(exchange).map((mark) => el('span', { class: 'mark' }, mark)),
        el('span', { class: 'who' }, `${who}, ${Math.round(ms)} ms`),
      ),
      meaning === undefined ? undefined : el('p', { class: 'means' }, meaning),
      el(
        'div',
        { class: 'halves' },
        block('Request', exchange.requestHeaders, exchange.requestBody),
        block('Answer', exchange.answerHeaders, exchange.answerBody),
      ),
      copyButton(curlOf(exchange)),
    ),
  );
}

function block(title: string, headers: readonly (readonly [string, string])[], body: string | undefined): HTMLElement {
  const lines = headers.map(([name, value]) => `${name}: ${name === 'authorization' ? shortened(value) : value}`);
  return el(
    'div',
    { class: 'half' },
    el('h4', {}, title),
    el('pre', { tabindex: '0' }, [...lines, ...(body ? ['', indented(body)] : [])].join('\n')),
  );
}

function shortened(token: string): string {
  return token.length > 24 ? `${token.slice(0, 16)}…` : token;
}

function indented(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}

function copyButton(text: string): HTMLElement {
  const button = el('button', { type: 'button', class: 'quiet', 'data-curl': text }, 'Copy as curl');
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = 'Copied';
    } catch {
      // Not every page may write to the clipboard; then it can be copied by hand.
      button.replaceWith(el('pre', { class: 'curl', tabindex: '0' }, text));
    }
  });
  return button;
}
