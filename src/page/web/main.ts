import { el } from './dom.ts';
import { createPage, type Page, type Panel } from './panel.ts';
import { askAModel } from './panels/ask-a-model.ts';
import { charts } from './panels/charts.ts';
import { rewrite } from './panels/rewrite.ts';
import { sendTwice } from './panels/send-twice.ts';
import { stored } from './panels/stored.ts';
import { twoEditors } from './panels/two-editors.ts';
import { offeredTenants, tokenForm } from './tenants.ts';

const panels: readonly Panel[] = [sendTwice, twoEditors, askAModel, rewrite, stored, charts];

const byId = (id: string) => document.getElementById(id) as HTMLElement;

/** Draws every panel and its link; a deep link is followed once its place is there. */
function show(tenants: Page['tenants']): void {
  const page = createPage(tenants);
  byId('tenants').replaceChildren(acting(tenants));
  byId('nav').replaceChildren(...panels.map(({ id, title }) => el('li', {}, el('a', { href: `#${id}` }, title))));
  for (const panel of panels) {
    const place = el('div', { class: 'body' });
    byId('panels').append(
      el(
        'section',
        { id: panel.id, class: 'panel', 'aria-labelledby': `${panel.id}-title`, tabindex: '-1' },
        el('h2', { id: `${panel.id}-title` }, el('a', { href: `#${panel.id}` }, panel.title)),
        el('p', { class: 'lead' }, panel.lead),
        place,
      ),
    );
    panel.mount(place, page);
  }
  followLink();
  addEventListener('hashchange', followLink);
  document.documentElement.dataset.ready = 'true';
}

function acting([first, ...others]: Page['tenants']): HTMLElement {
  const other = others.find(({ tenant }) => tenant !== first.tenant);
  const also = other === undefined ? '' : `; the other tenant is ${other.tenant} (${other.sub})`;
  return el('p', { class: 'acting' }, `You are ${first.sub} of the tenant ${first.tenant}${also}.`);
}

function followLink(): void {
  const panel = location.hash === '' ? null : document.getElementById(location.hash.slice(1));
  panel?.scrollIntoView();
  panel?.focus({ preventScroll: true });
  for (const link of document.querySelectorAll('#nav a')) {
    if (link.getAttribute('href') === location.hash) link.setAttribute('aria-current', 'true');
    else link.removeAttribute('aria-current');
  }
}

const [first, ...rest] = (await offeredTenants().catch(() => undefined)) ?? [];
if (first === undefined) byId('tenants').append(tokenForm(show));
else show([first, ...rest]);
