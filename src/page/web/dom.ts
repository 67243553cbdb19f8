type Child = Node | string | undefined | false;
type Handlers = { readonly [K in keyof HTMLElementEventMap as `on${K}`]?: (event: HTMLElementEventMap[K]) => void };
type Attributes = Handlers & { readonly [name: string]: unknown };

/** An element with attributes, `onclick` and the like, and children. True sets an empty attribute; false and undefined set none. */
export function el<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on') && typeof value === 'function') {
      element.addEventListener(key.slice(2), value as EventListener);
    } else if (value === true) element.setAttribute(key, '');
    else if (value !== undefined && value !== false) element.setAttribute(key, String(value));
  }
  element.append(...children.filter((child): child is Node | string => child !== undefined && child !== false));
  return element;
}

/** A button that is out of reach while its work runs; what the work throws goes to `onError`. */
export function actionButton(
  label: string,
  work: () => Promise<unknown>,
  onError: (error: unknown) => void,
  attributes: Attributes = {},
): HTMLButtonElement {
  const button = el('button', { type: 'button', ...attributes }, label);
  button.addEventListener('click', async () => {
    if (button.getAttribute('aria-disabled') === 'true') return;
    // Not `disabled`: the focus would be lost.
    button.setAttribute('aria-disabled', 'true');
    try {
      await work();
    } catch (error) {
      onError(error);
    } finally {
      button.removeAttribute('aria-disabled');
    }
  });
  return button;
}

/** A control under its label. */
export function field(label: string, control: HTMLElement, hint?: string): HTMLElement {
  if (control.id === '') {
    fields += 1;
    control.id = `f-${fields}`;
  }
  return el('div', { class: 'field' }, el('label', { for: control.id }, label), control, hint && el('small', {}, hint));
}
let fields = 0;

/** A few words that screen readers are told of when they change. */
export function status(): { readonly element: HTMLElement; say(words: string, tone?: 'good' | 'bad' | 'plain'): void } {
  const element = el('p', { class: 'status', role: 'status', 'aria-live': 'polite' });
  return {
    element,
    say(words, tone = 'plain') {
      element.textContent = words;
      element.dataset.tone = tone;
    },
  };
}

/** One of several answers to a question; `hint` says what an answer means. */
export function choice<T extends string>(
  question: string,
  options: readonly (readonly [value: T, label: string, hint?: string])[],
  chosen: T,
  onChoice: (value: T) => void,
): HTMLElement {
  fields += 1;
  const name = `c-${fields}`;
  return el(
    'fieldset',
    { class: 'choice' },
    el('legend', {}, question),
    ...options.map(([value, label, hint]) =>
      el(
        'label',
        {},
        el('input', { type: 'radio', name, value, checked: value === chosen, onchange: () => onChoice(value) }),
        el('span', {}, label, hint && el('small', {}, hint)),
      ),
    ),
  );
}
