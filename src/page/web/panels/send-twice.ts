import { el } from '../dom.ts';
import type { Panel } from '../panel.ts';

/** To be written. */
export const sendTwice: Panel = {
  id: 'send-twice',
  title: 'Send twice',
  lead: '',
  mount(place) {
    place.append(el('p', {}, 'To be written.'));
  },
};
