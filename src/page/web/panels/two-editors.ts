import { el } from '../dom.ts';
import type { Panel } from '../panel.ts';

/** To be written. */
export const twoEditors: Panel = {
  id: 'two-editors',
  title: 'Two editors',
  lead: '',
  mount(place) {
    place.append(el('p', {}, 'To be written.'));
  },
};
