/** Deepest nesting of arrays and objects that is read. */
export const maxJsonDepth = 64;

const number = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const escapeSequence = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

class Fault extends Error {}

/**
 * Why a text is refused as JSON, with the place: one sentence about its first fault, or undefined when it has none.
 * Slow and exact; it runs only for texts that `parseJsonText` refuses, which decides by other means.
 */
export function findJsonFault(text: string): string | undefined {
  try {
    new FaultFinder(text).document();
    return undefined;
  } catch (fault) {
    if (fault instanceof Fault) return fault.message;
    throw fault;
  }
}

class FaultFinder {
  readonly text: string;
  at = 0;

  constructor(text: string) {
    this.text = text;
  }

  document(): void {
    this.value(0);
    if (this.peek() !== '') throw this.unexpected('the end');
  }

  /** Recursion ends at `maxJsonDepth`. */
  value(depth: number): void {
    const next = this.peek();
    if (next === '{' || next === '[') {
      if (depth === maxJsonDepth) throw this.fault(`Nesting is deeper than ${maxJsonDepth}`);
      this.at++;
      if (next === '{') this.members(depth + 1);
      else this.items(depth + 1);
    } else if (next === '"') this.string();
    else if (next === '-' || (next >= '0' && next <= '9')) this.number();
    else this.word();
  }

  members(depth: number): void {
    const names = new Set<string>();
    if (this.closes('}')) return;
    do {
      if (this.peek() !== '"') throw this.unexpected('a member name in quotes');
      const start = this.at;
      const name = this.string();
      if (names.has(name)) {
        this.at = start;
        throw this.fault(`The member ${JSON.stringify(name.slice(0, 40))} is there twice`);
      }
      names.add(name);
      if (this.peek() !== ':') throw this.unexpected('a colon');
      this.at++;
      this.value(depth);
    } while (this.goesOn('}'));
  }

  items(depth: number): void {
    if (this.closes(']')) return;
    do this.value(depth);
    while (this.goesOn(']'));
  }

  /** Past a comma: true. Past the closing bracket: false. */
  goesOn(close: string): boolean {
    if (this.closes(close)) return false;
    if (this.peek() !== ',') throw this.unexpected(`a comma or ${close}`);
    this.at++;
    return true;
  }

  closes(close: string): boolean {
    if (this.peek() !== close) return false;
    this.at++;
    return true;
  }

  string(): string {
    const start = this.at++;
    for (;;) {
      const unit = this.text.charCodeAt(this.at);
      if (Number.isNaN(unit)) throw this.unexpected('a closing quote');
      if (unit < 0x20) throw this.fault('A control character in a string must be escaped');
      if (unit === 0x22) return JSON.parse(this.text.slice(start, ++this.at));
      if (unit !== 0x5c) this.at++;
      else if (!this.skip(escapeSequence)) throw this.fault('Not an escape of JSON');
    }
  }

  number(): void {
    const start = this.at;
    if (!this.skip(number)) throw this.unexpected('a number');
    if (Math.abs(Number(this.text.slice(start, this.at))) <= Number.MAX_SAFE_INTEGER) return;
    this.at = start;
    throw this.fault('A number is beyond ±(2^53 − 1) and would lose digits; send it as a string');
  }

  word(): void {
    const word = ['true', 'false', 'null'].find((candidate) => this.text.startsWith(candidate, this.at));
    if (word === undefined) throw this.unexpected('a value');
    this.at += word.length;
  }

  skip(pattern: RegExp): boolean {
    pattern.lastIndex = this.at;
    const found = pattern.test(this.text);
    if (found) this.at = pattern.lastIndex;
    return found;
  }

  /** The next character that is no white space of JSON, '' at the end. */
  peek(): string {
    while (' \t\n\r'.includes(this.text[this.at] ?? '-')) this.at++;
    return this.text[this.at] ?? '';
  }

  unexpected(wanted: string): Fault {
    const found = this.at < this.text.length ? 'something else' : 'the end of the body';
    return this.fault(`Expected ${wanted}, found ${found}`);
  }

  fault(what: string): Fault {
    return new Fault(`${what}, at character ${this.at}.`);
  }
}
