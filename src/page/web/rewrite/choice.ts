import { actionButton, el } from '../dom.ts';

/** Two texts of which one is to stay. */
export type Offer = {
  /** What is not in the document (a draft, or what was typed), and what to do to have it. */
  readonly mine: { readonly title: string; readonly text: string; readonly label: string; take(): Promise<unknown> };
  /** What is in the document now, and what to do to leave it so. */
  readonly theirs: { readonly title: string; readonly text: string; readonly label: string; take(): Promise<unknown> };
};

/** A place where two texts stand side by side until one is chosen. */
export function createChoice(onError: (error: unknown) => void): {
  readonly element: HTMLElement;
  offer(offer: Offer): void;
  close(): void;
} {
  const element = el('section', { class: 'offer', 'aria-label': 'Two texts, one place', hidden: true });
  const close = () => {
    element.hidden = true;
    element.replaceChildren();
  };
  const side = ({ title, text, label, take }: Offer['mine'], name: string) =>
    el(
      'div',
      { class: name },
      el('h3', {}, title),
      el('pre', { class: 'text', tabindex: '0' }, text),
      actionButton(label, take, onError),
    );
  return {
    element,
    close,
    offer({ mine, theirs }) {
      element.replaceChildren(el('div', { class: 'split' }, side(mine, 'mine'), side(theirs, 'theirs')));
      element.hidden = false;
    },
  };
}
