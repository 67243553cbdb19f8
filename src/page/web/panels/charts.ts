import { el } from '../dom.ts';
import type { Panel } from '../panel.ts';

/** To be written. */
export const charts: Panel = {
  id: 'charts',
  title: 'The benchmark',
  lead: '',
  mount(place) {
    place.append(el('p', {}, 'To be written.'));
  },
};
