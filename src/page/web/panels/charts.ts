import { type Caption, captionsOf, type Statistics } from '../captions.ts';
import { el } from '../dom.ts';
import type { Panel } from '../panel.ts';

/** What was measured, and what it means. */
export const charts: Panel = {
  id: 'charts',
  title: 'The benchmark',
  lead: 'What the promises cost and what they save, measured on one machine. Ratios travel to other machines, rates do not.',
  mount(place) {
    const figures = el('div', { class: 'charts', 'aria-busy': 'true' });
    place.append(figures);
    void statistics().then((found) => {
      figures.removeAttribute('aria-busy');
      if (found === undefined) figures.append(missing());
      else figures.append(...captionsOf(found).map(figureOf), ...source(found));
    });
  },
};

/** The figures that the server has; undefined when there are none. */
async function statistics(): Promise<Statistics | undefined> {
  const answer = await fetch('/charts/statistics.json').catch(() => undefined);
  return answer?.ok ? ((await answer.json()) as Statistics) : undefined;
}

function figureOf({ cell, title, alt, words }: Caption): HTMLElement {
  const image = el('img', { src: `/charts/${cell}.svg`, alt, width: 760, height: 400, loading: 'lazy' });
  image.addEventListener('error', () => image.replaceWith(el('p', { class: 'empty' }, 'This chart is not there yet.')));
  return el(
    'figure',
    { class: 'chart', 'data-cell': cell },
    el('h3', {}, title),
    // On a narrow screen it is moved, not made too small to read.
    el('div', { class: 'plot', role: 'region', 'aria-label': title, tabindex: '0' }, image),
    el('figcaption', {}, words ?? 'This was not measured, or a check of the database failed: no figures.'),
  );
}

function source({ environment }: Statistics): HTMLElement[] {
  if (environment === undefined) return [];
  const { commit, date, cores, cpu } = environment;
  return [
    el(
      'p',
      { class: 'source' },
      `Measured at ${commit} on ${date}, ${cores} cores of ${cpu} shared by client, server and Postgres. All figures with their spread are in docs/results.md; `,
      el('code', {}, 'npm run bench'),
      ' makes them anew.',
    ),
  ];
}

function missing(): HTMLElement {
  return el(
    'p',
    { class: 'empty' },
    'This server has no figures beside it. ',
    el('code', {}, 'npm run bench'),
    ' in the project makes them; start the server again afterwards.',
  );
}
