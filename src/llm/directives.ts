/** What goes wrong with a call. `after`: when so many tokens are out. */
export type Fault =
  | { readonly kind: 'status'; readonly status: number; readonly retryAfterSeconds?: number }
  | { readonly kind: 'refused' }
  | { readonly kind: 'stall'; readonly after: number }
  | { readonly kind: 'cut'; readonly after: number }
  | { readonly kind: 'error'; readonly after: number };

/** A fault that is an end; a stall is none. */
export type EndingFault = Exclude<Fault, { kind: 'stall' }>;

/** Text that storing, counting and escaping stumble over. */
export type AwkwardText = 'nul' | 'surrogate' | 'emoji' | 'crlf' | 'html';

/** What a prompt tells the simulated model or the stub to do. */
export type Directives = {
  readonly fault?: Fault;
  /** The fault meets the first so many calls with one Idempotency-Key; later ones work. */
  readonly faultTimes: number;
  /** From the call to the last token. */
  readonly latencyMs?: number;
  /** Nothing is sent before this. */
  readonly firstMs?: number;
  readonly tokens?: number;
  readonly text?: AwkwardText;
  /** Length of the text, in characters. */
  readonly length?: number;
  readonly echo: boolean;
  readonly tellsUsage: boolean;
  /** The prompt without its directives. */
  readonly rest: string;
};

const DIRECTIVE = /\[\[([a-z-]{1,20})((?::[a-z0-9]{1,10}){0,2})(?: times=([0-9]{1,6}))?\]\]/g;
const MAX_MS = 3_600_000;
const MAX_TOKENS = 100_000;
const MAX_LENGTH = 4_000_000;

/**
 * Finds the directives in a prompt; of two that contradict each other the later one holds, an unknown one is plain text.
 *
 * | directive | what the model does |
 * |---|---|
 * | `[[fail:500]]`, `[[fail:429:2]]` | answers with this error status, `Retry-After: 2` |
 * | `[[refused]]` | cannot be reached: the call is never sent (the stub closes the connection at once) |
 * | `[[stall]]`, `[[stall-after:10]]` | never answers; falls silent after 10 tokens |
 * | `[[cut]]`, `[[cut:10]]` | closes the connection without a byte; after 10 tokens |
 * | `[[error]]`, `[[error:10]]` | answers with 200 and then an error in mid-stream; after 10 tokens |
 * | `[[ok]]` | works, whatever fault was asked for before |
 * | `[[… times=2]]` | any of the above, for the first two calls with one Idempotency-Key only |
 * | `[[slow:5000]]` | last token after 5,000 ms |
 * | `[[first:800]]` | first byte after 800 ms |
 * | `[[tokens:200]]` | answers with 200 tokens |
 * | `[[text:nul]]`, `surrogate`, `emoji`, `crlf`, `html` | U+0000; a lone surrogate; emoji cut between two pieces; line ends; markup |
 * | `[[text:long:200000]]` | 200,000 characters |
 * | `[[echo]]` | the prompt itself, without the directives |
 * | `[[no-usage]]` | does not say how many tokens it took |
 */
export function parseDirectives(prompt: string): Directives {
  let found: Omit<Directives, 'rest'> = { faultTimes: Number.POSITIVE_INFINITY, echo: false, tellsUsage: true };
  const rest = prompt.replaceAll(DIRECTIVE, (whole, name: string, args: string, times: string | undefined) => {
    const part = readDirective(name, args === '' ? [] : args.slice(1).split(':'));
    if (part === undefined) return whole;
    found = { ...found, ...part };
    if (part.fault !== undefined) {
      found = { ...found, faultTimes: times === undefined ? Number.POSITIVE_INFINITY : Number(times) };
    }
    return '';
  });
  return { ...found, rest: rest.trim() };
}

function readDirective(name: string, [first, second]: readonly string[]): Partial<Directives> | undefined {
  const number = first === undefined ? undefined : natural(first);
  switch (name) {
    case 'fail':
      return readFail(number, second);
    case 'ok':
      return { faultTimes: 0 };
    case 'refused':
      return { fault: { kind: 'refused' } };
    case 'stall':
      return { fault: { kind: 'stall', after: 0 } };
    case 'stall-after':
      return number === undefined ? undefined : { fault: { kind: 'stall', after: number } };
    case 'cut':
    case 'error':
      return { fault: { kind: name, after: number ?? 0 } };
    case 'slow':
      return number === undefined ? undefined : { latencyMs: Math.min(number, MAX_MS) };
    case 'first':
      return number === undefined ? undefined : { firstMs: Math.min(number, MAX_MS) };
    case 'tokens':
      return number === undefined ? undefined : { tokens: Math.min(Math.max(number, 1), MAX_TOKENS) };
    case 'text':
      return readText(first, second);
    case 'echo':
      return { echo: true };
    case 'no-usage':
      return { tellsUsage: false };
    default:
      return undefined;
  }
}

function readFail(status: number | undefined, wait: string | undefined): Partial<Directives> | undefined {
  if (status === undefined || status < 400 || status > 599) return undefined;
  const retryAfterSeconds = wait === undefined ? undefined : natural(wait);
  return { fault: { kind: 'status', status, ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }) } };
}

function readText(kind: string | undefined, length: string | undefined): Partial<Directives> | undefined {
  switch (kind) {
    case 'nul':
    case 'surrogate':
    case 'emoji':
    case 'crlf':
    case 'html':
      return { text: kind };
    case 'long':
      return { length: Math.min(natural(length ?? '') ?? 200_000, MAX_LENGTH) };
    default:
      return undefined;
  }
}

function natural(text: string): number | undefined {
  return /^[0-9]+$/.test(text) ? Number(text) : undefined;
}
