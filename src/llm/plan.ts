import { createHash } from 'node:crypto';
import { type AwkwardText, type Fault, parseDirectives } from './directives.ts';
import type { Finish, Usage } from './provider.ts';
import { estimatePromptTokens } from './tokens.ts';

/** What a pretended model will say and do: settled before it begins, so that a test can expect it. */
export type Plan = {
  readonly tokens: readonly string[];
  readonly finish: Finish;
  readonly usage: Usage;
  /** False when the prompt forbids to tell it. */
  readonly tellsUsage: boolean;
  readonly fault?: Fault;
  /** From the call to the last token; the tokens are spread evenly. */
  readonly latencyMs: number;
  readonly firstMs: number;
};

type PlanInput = {
  readonly prompt: string;
  /** Directives that hold unless the prompt says otherwise, and such that hold whatever it says. */
  readonly directives?: { readonly before: string; readonly after: string };
  readonly maxTokens: number;
  /** The same seed and prompt give the same words. */
  readonly seed: string;
  /** Which call with this key it is, from 1: decides over faults with `times=N`. */
  readonly attempt: number;
  readonly latencyMs: number;
  readonly tokenCount: number;
};

const WORDS = `a the this every one some small slow late early open plain quiet steady second first other same
  request answer key retry tag version document order client server row lease claim token queue worker stream ledger
  waits commits replays returns holds changes sends reads writes keeps finds counts settles ends begins
  again once twice safely and or but then before after while with without under over until`.split(/\s+/);
const WORDS_A_SENTENCE = 9;

const AWKWARD: { readonly [kind in AwkwardText]: readonly [string, string] } = {
  // The end of one token and the beginning of the next.
  nul: ['\u0000', 'a\u0000b'],
  surrogate: ['\udfff?', '\ud800 '],
  // The party popper's two halves land in two pieces.
  emoji: ['👩‍👩‍👧 \ud83c', '\udf89 é'],
  crlf: ['\r\n\r\ndata: x', '\n\u2028\u2029\t"\\'],
  html: ['<script>alert(1)</script>', '&amp;<b>'],
};

/** Decides what the pretended model answers to a prompt: readable words from the seed, or what the prompt's directives say. */
export function planAnswer(input: PlanInput): Plan {
  const { before, after } = input.directives ?? { before: '', after: '' };
  const directives = parseDirectives(before + input.prompt + after);
  const { fault, firstMs = 0, latencyMs = input.latencyMs } = directives;
  const whole = directives.echo
    ? (directives.rest.match(/\s*\S+/g) ?? [])
    : writeTokens(directives.tokens ?? input.tokenCount, `${input.seed}\n${input.prompt}`, directives);
  const tokens = whole.slice(0, input.maxTokens);
  return {
    tokens,
    finish: tokens.length < whole.length ? 'length' : 'stop',
    latencyMs: Math.max(latencyMs, firstMs),
    firstMs,
    usage: { promptTokens: estimatePromptTokens(input.prompt), completionTokens: tokens.length },
    tellsUsage: directives.tellsUsage,
    ...(fault !== undefined && input.attempt <= directives.faultTimes ? { fault } : {}),
  };
}

function writeTokens(
  count: number,
  seed: string,
  shape: { readonly text?: AwkwardText; readonly length?: number },
): string[] {
  const random = seededRandom(seed);
  if (shape.length !== undefined) return writeLongTokens(count, shape.length, random);
  const tokens: string[] = [];
  for (let index = 0; index < count; index++) tokens.push(wordAt(index, count, random));
  if (shape.text !== undefined) {
    const [first, second] = AWKWARD[shape.text];
    if (count > 1) tokens[1] = second + tokens[1];
    tokens[0] += count > 1 ? first : first + second;
  }
  return tokens;
}

function wordAt(index: number, count: number, random: () => number): string {
  const word = WORDS[Math.floor(random() * WORDS.length)]!;
  const opens = index % WORDS_A_SENTENCE === 0;
  const closes = index === count - 1 || index % WORDS_A_SENTENCE === WORDS_A_SENTENCE - 1;
  return `${index === 0 ? '' : ' '}${opens ? word[0]!.toUpperCase() + word.slice(1) : word}${closes ? '.' : ''}`;
}

/** Few tokens, each of many words: so that a long text fits below any `maxTokens`. */
function writeLongTokens(count: number, length: number, random: () => number): string[] {
  let text = '';
  for (let index = 0; text.length < length; index++) text += wordAt(index, Number.POSITIVE_INFINITY, random);
  const size = Math.max(1, Math.ceil(length / count));
  const tokens: string[] = [];
  for (let at = 0; at < length; at += size) tokens.push(text.slice(at, Math.min(at + size, length)));
  return tokens;
}

/** mulberry32 over a digest of the seed: 32 bits of state are plenty for words. */
function seededRandom(seed: string): () => number {
  let state = createHash('sha256').update(seed).digest().readUInt32LE();
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
