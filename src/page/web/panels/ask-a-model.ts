import { el } from '../dom.ts';
import type { Panel } from '../panel.ts';

/** To be written. */
export const askAModel: Panel = {
  id: 'ask-a-model',
  title: 'Ask a model',
  lead: '',
  mount(place) {
    place.append(el('p', {}, 'To be written.'));
  },
};
