import { el } from '../dom.ts';
import type { Panel } from '../panel.ts';

/** To be written. */
export const stored: Panel = {
  id: 'stored',
  title: 'What is stored',
  lead: '',
  mount(place) {
    place.append(el('p', {}, 'To be written.'));
  },
};
