import { el } from '../dom.ts';
import type { Panel } from '../panel.ts';

/** To be written. */
export const rewrite: Panel = {
  id: 'rewrite',
  title: 'Rewrite',
  lead: '',
  mount(place) {
    place.append(el('p', {}, 'To be written.'));
  },
};
