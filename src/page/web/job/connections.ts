import { el } from '../dom.ts';

/** The connections over which a job was read, each with the events it brought. */
export type Connections = {
  readonly element: HTMLElement;
  opened(after: number): void;
  /** Answers what is wrong with this number behind its predecessor; undefined: nothing. */
  event(seq: number): string | undefined;
  /** Forgets them; `last` is the event that was read before. */
  restart(last: number): void;
  /** How many there were. */
  count(): number;
};

/** None yet. */
export function createConnections(): Connections {
  const element = el('ol', { class: 'connections', 'aria-label': 'Connections' });
  let last = 0;
  let after = 0;
  let item: HTMLElement | undefined;
  const show = () => {
    const begin = after === 0 ? 'From the start' : `Last-Event-ID: ${after}`;
    const brought = last > after ? `, events ${after + 1} to ${last}` : ', nothing yet';
    if (item !== undefined) item.textContent = begin + brought;
  };
  return {
    element,
    count: () => element.children.length,
    opened(behind) {
      after = behind;
      item = el('li');
      element.append(item);
      show();
    },
    event(seq) {
      const expected = last + 1;
      last = seq;
      show();
      return seq === expected ? undefined : `event ${expected} was expected and ${seq} came`;
    },
    restart(read) {
      last = read;
      after = read;
      item = undefined;
      element.replaceChildren();
    },
  };
}
