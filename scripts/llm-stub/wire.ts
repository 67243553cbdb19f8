import { createHash } from 'node:crypto';
import type { Finish, Usage } from '../../src/llm/provider.ts';

/** A chat completion as it was asked for. */
export type ChatRequest = {
  readonly model: string;
  readonly prompt: string;
  readonly maxTokens: number;
  readonly temperature: number | undefined;
  readonly isStream: boolean;
  readonly includeUsage: boolean;
  /** The same for the same body. */
  readonly digest: string;
};

/** The tokens of an answer whose request names no bound. */
const DEFAULT_MAX_TOKENS = 4_096;

/** Reads the body of `POST /v1/chat/completions`; answers with a sentence when something is missing or of the wrong type. */
export function parseChatRequest(text: string): ChatRequest | string {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return 'We could not parse the JSON body of your request.';
  }
  const { model, messages, stream, stream_options, max_tokens, max_completion_tokens, temperature } = asObject(body);
  if (typeof model !== 'string' || model === '') return "Missing required parameter: 'model'.";
  if (!Array.isArray(messages) || messages.length === 0) return "Missing required parameter: 'messages'.";
  const maxTokens = max_completion_tokens ?? max_tokens ?? DEFAULT_MAX_TOKENS;
  if (!Number.isSafeInteger(maxTokens) || (maxTokens as number) < 1)
    return "Invalid 'max_tokens': not a positive integer.";
  return {
    model,
    prompt: messages.map((message) => readContent(asObject(message).content)).join('\n'),
    maxTokens: maxTokens as number,
    temperature: typeof temperature === 'number' ? temperature : undefined,
    isStream: stream === true,
    includeUsage: asObject(stream_options).include_usage === true,
    digest: createHash('sha256').update(text).digest('base64url'),
  };
}

/** Identity of one answer; every chunk of it carries the same. */
export type AnswerHead = { readonly id: string; readonly created: number; readonly model: string };

/** One event of a streamed answer. */
export function formatChunk(
  head: AnswerHead,
  part: { readonly content?: string; readonly role?: 'assistant'; readonly finish?: Finish },
): string {
  const { finish = null, ...delta } = part;
  const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }];
  return formatData({ ...head, object: 'chat.completion.chunk', choices });
}

/** The event behind the last choice, for those who asked for the usage. */
export function formatUsageChunk(head: AnswerHead, usage: Usage): string {
  return formatData({ ...head, object: 'chat.completion.chunk', choices: [], usage: usageBody(usage) });
}

/** Any JSON as one event. */
export function formatData(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

/** The last event of a streamed answer. */
export const DONE = 'data: [DONE]\n\n';

/** An answer that is not streamed. */
export function formatCompletion(
  head: AnswerHead,
  answer: { readonly text: string; readonly finish: Finish; readonly usage: Usage | undefined },
): string {
  const message = { role: 'assistant', content: answer.text, refusal: null };
  const choices = [{ index: 0, message, logprobs: null, finish_reason: answer.finish }];
  const usage = answer.usage === undefined ? {} : { usage: usageBody(answer.usage) };
  return JSON.stringify({ ...head, object: 'chat.completion', choices, ...usage });
}

/** The body of an error answer. */
export function errorBody(message: string, type: string): { readonly error: object } {
  return { error: { message, type, param: null, code: null } };
}

function usageBody({ promptTokens, completionTokens }: Usage): object {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
}

/** A message's content is a string, or a list of parts. */
function readContent(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part) => asObject(part).text ?? '').join('');
}

function asObject(value: unknown): { readonly [name: string]: unknown } {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
