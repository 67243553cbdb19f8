import { failedInMidStream, failureOfStatus } from './failures.ts';
import { type Finish, ModelError, type Usage } from './provider.ts';

/** What one chunk of a streamed answer, or a whole answer, says. `finish` and `usage` where it names them. */
export type Said = { readonly text: string; readonly finish?: Finish; readonly usage?: Usage };

type ReadOptions = {
  readonly nowMs: number;
  /** Takes the API key out of the provider's words, and bounds them. */
  readonly redact: (words: string) => string;
};

/**
 * Reads one JSON text of the chat completions protocol: a chunk (`delta`) or a whole answer (`message`).
 * Only what this protocol needs is looked at. Throws `ModelError` for an error in it, and for what is no such JSON.
 */
export function readAnswer(json: string, options: ReadOptions): Said {
  const answer = parse(json);
  if (answer.error !== undefined && answer.error !== null) throw errorOf(answer.error, options);
  const choices = Array.isArray(answer.choices) ? answer.choices : [];
  // One answer was asked for, so others are none of ours; a chunk of usage has no choice at all.
  const choice = choices.map(asObject).find((one) => one.index === 0 || one.index === undefined) ?? {};
  const { content } = asObject(choice.delta ?? choice.message);
  const finish = finishOf(choice.finish_reason);
  const usage = usageOf(asObject(answer.usage));
  return {
    text: typeof content === 'string' ? content : '',
    ...(finish === undefined ? {} : { finish }),
    ...(usage === undefined ? {} : { usage }),
  };
}

/** A broken text inside an answer: the model ran, and what it wrote did not come through. */
export function garbled(): ModelError {
  const message = 'The model provider sent an answer that cannot be read.';
  return new ModelError({ kind: 'unknown', code: 'upstream_failed', message });
}

function parse(json: string): { readonly [name: string]: unknown } {
  try {
    const value: unknown = JSON.parse(json);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return asObject(value);
  } catch {
    // The parser's message quotes the text: not kept.
  }
  throw garbled();
}

function asObject(value: unknown): { readonly [name: string]: unknown } {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

/** Every reason is an end that the model or its provider chose (`content_filter`, `tool_calls`); only `length` is special. */
function finishOf(reason: unknown): Finish | undefined {
  if (typeof reason !== 'string') return undefined;
  return reason === 'length' ? 'length' : 'stop';
}

function usageOf({ prompt_tokens: prompt, completion_tokens: completion }: ReturnType<typeof asObject>) {
  return isCount(prompt) && isCount(completion) ? { promptTokens: prompt, completionTokens: completion } : undefined;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Gateways put the status that it would have been into `code`. */
function errorOf(error: unknown, { nowMs, redact }: ReadOptions): ModelError {
  const { code, message } = asObject(error);
  const detail = redact(typeof message === 'string' ? message : JSON.stringify(error));
  return Number.isInteger(code) && (code as number) >= 400 && (code as number) <= 599
    ? failureOfStatus({ status: code as number, detail }, nowMs)
    : failedInMidStream(detail);
}
