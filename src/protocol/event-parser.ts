/** One event as it was read. `id` is the last one seen so far, '' before the first; `event` is `message` unless named. */
export type IncomingEvent = { readonly id: string; readonly event: string; readonly data: string };

/** Reads a `text/event-stream` piece by piece. */
export type EventParser = {
  /** The events that this chunk completes; chunks may be cut anywhere. Throws a RangeError when an event outgrows the buffer. */
  push(chunk: Uint8Array): IncomingEvent[];
  /** What to send as `Last-Event-ID` when connecting again. */
  readonly lastEventId: string;
  /** The wait before connecting again that the server asked for, in milliseconds. */
  readonly retryMs: number | undefined;
};

/** Largest wait a timer can hold. Milliseconds. */
const maxTimerMs = 2_147_483_647;

/**
 * A parser as the WHATWG HTML standard describes it (§9.2.6): CR, LF and CRLF end lines, a BOM is skipped, an event the stream ends in is
 * dropped. Keeps at most `maxEventChars` characters of an unfinished event.
 */
export function createEventParser({ maxEventChars = 1_048_576 } = {}): EventParser {
  return new Parser(maxEventChars);
}

class Parser implements EventParser {
  lastEventId = '';
  retryMs: number | undefined;
  readonly #maxEventChars: number;
  readonly #decoder = new TextDecoder();
  /** The pieces of the line that has not ended yet; joined once, so that many small chunks cost linear time. */
  #line: string[] = [];
  #data: string[] = [];
  #event = '';
  #id = '';
  /** Characters held in `#line` and `#data`. */
  #held = 0;
  #afterCr = false;

  constructor(maxEventChars: number) {
    this.#maxEventChars = maxEventChars;
  }

  push(chunk: Uint8Array): IncomingEvent[] {
    const text = this.#decoder.decode(chunk, { stream: true });
    const events: IncomingEvent[] = [];
    let start = 0;
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      if (unit === 0x0a && this.#afterCr) {
        // The second half of a CRLF, perhaps in the next chunk.
        this.#afterCr = false;
        start = i + 1;
        continue;
      }
      this.#afterCr = unit === 0x0d;
      if (unit !== 0x0a && unit !== 0x0d) continue;
      this.#hold(text.slice(start, i));
      start = i + 1;
      const event = this.#endLine();
      if (event !== undefined) events.push(event);
    }
    this.#hold(text.slice(start));
    return events;
  }

  #hold(piece: string): void {
    if (piece === '') return;
    this.#held += piece.length;
    if (this.#held > this.#maxEventChars) {
      throw new RangeError(`An event is larger than ${this.#maxEventChars} characters.`);
    }
    this.#line.push(piece);
  }

  #endLine(): IncomingEvent | undefined {
    const line = this.#line.join('');
    this.#line = [];
    if (line === '') return this.#endEvent();
    const isData = this.#field(line);
    if (!isData) this.#held -= line.length;
    return undefined;
  }

  /** True when the line's text is kept. A line that begins with a colon has an empty name, which is no field: a comment. */
  #field(line: string): boolean {
    const colon = line.indexOf(':');
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (name === 'data') {
      this.#data.push(value);
      return true;
    }
    if (name === 'event') this.#event = value;
    if (name === 'id' && !value.includes('\0')) this.#id = value;
    if (name === 'retry' && /^[0-9]+$/.test(value)) this.retryMs = Math.min(Number(value), maxTimerMs);
    return false;
  }

  #endEvent(): IncomingEvent | undefined {
    // The id counts even when the block has no data.
    this.lastEventId = this.#id;
    const [event, data] = [this.#event, this.#data];
    this.#event = '';
    this.#data = [];
    this.#held = 0;
    if (data.length === 0) return undefined;
    return { id: this.lastEventId, event: event === '' ? 'message' : event, data: data.join('\n') };
  }
}
