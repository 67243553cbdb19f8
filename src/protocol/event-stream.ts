/** One server-sent event to write. `id` and `event` must be one line; `data` may be several. */
export type OutgoingEvent = { readonly id?: string; readonly event?: string; readonly data: string };

/** The event as a block of `text/event-stream`. Throws a TypeError when id or name could break out of their line. */
export function formatEvent({ id, event, data }: OutgoingEvent): string {
  let block = '';
  if (id !== undefined) block += `id: ${oneLine(id)}\n`;
  if (event !== undefined) block += `event: ${oneLine(event)}\n`;
  return `${block}${lines('data: ', data)}\n`;
}

/** A comment: keeps a quiet connection open and is no event for the reader. */
export function formatComment(text = ''): string {
  return `${lines(': ', text)}\n`;
}

/** Tells the reader how long to wait before it connects again. Milliseconds. */
export function formatRetry(ms: number): string {
  return `retry: ${ms}\n\n`;
}

function lines(head: string, text: string): string {
  return text
    .split(/\r\n|\r|\n/)
    .map((line) => `${head}${line}\n`)
    .join('');
}

function oneLine(text: string): string {
  if (/[\r\n\0]/.test(text)) throw new TypeError('An event id or name must not contain a line break or U+0000.');
  return text;
}
