import { type IncomingMessage, validateHeaderValue } from 'node:http';
import { createEventParser } from '../protocol/event-parser.ts';
import { cutOff, failureOfStatus } from './failures.ts';
import { garbled, readAnswer, type Said } from './openai-answer.ts';
import { type Finish, type ModelCall, ModelError, type Piece, type Provider, type Usage } from './provider.ts';
import { estimatePromptTokens } from './tokens.ts';
import { post, readBytes } from './transport.ts';

/** Once the reason of the end is there, the answer is whole; the usage behind it gets this long. */
const USAGE_GRACE_MS = 1_000;
/** An error answer's body is only for the log: it gets this long and this many characters. */
const DETAIL_GRACE_MS = 500;
const MAX_DETAIL_LENGTH = 500;
/** More is read than shown, so that a key at the edge is seen whole and blanked. */
const MAX_DETAIL_READ = 4_000;
/** An answer in one piece: the longest text that is kept (`runModel`), each unit escaped. */
const MAX_WHOLE_BYTES = 25_165_824;

export type OpenAiOptions = {
  /** Up to and including the version, such as `http://127.0.0.1:4010/v1`; a query is kept. */
  readonly baseUrl: string;
  readonly apiKey?: string | undefined;
  readonly model: string;
  readonly now?: () => number;
};

/**
 * A model behind any server that speaks OpenAI's chat completions, streamed.
 * Throws at once, without naming it, for an API key that no header can carry.
 */
export function createOpenAiProvider({ baseUrl, apiKey, model, now = Date.now }: OpenAiOptions): Provider {
  const url = new URL(baseUrl);
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/chat/completions`;
  if (apiKey !== undefined) validateHeaderValue('authorization', apiKey);
  const redact = (text: string) => (apiKey ? text.replaceAll(apiKey, '…') : text).slice(0, MAX_DETAIL_LENGTH);
  const read = (json: string) => readAnswer(json, { nowMs: now(), redact });

  async function* generate(call: ModelCall): AsyncGenerator<Piece> {
    const response = await post({
      url,
      headers: headersOf(call, apiKey),
      body: bodyOf(call, model),
      signal: call.signal,
      onSent: call.onSent,
    });
    try {
      const status = response.statusCode ?? 0;
      if (status < 200 || status > 299) {
        const detail = redact(await readDetail(response, call.signal));
        throw failureOfStatus({ status, headers: response.headers, detail }, now());
      }
      const type = (response.headers['content-type'] ?? '').split(';')[0]!.trim().toLowerCase();
      if (type === 'text/event-stream') yield* readStream(response, call.signal, read);
      else if (type === 'application/json') yield* readWhole(response, call.signal, read);
      else throw otherProtocol(redact(type));
    } finally {
      response.destroy();
    }
  }

  return { name: `openai:${model}`, generate };
}

type Read = (json: string) => Said;

function headersOf(call: ModelCall, apiKey: string | undefined): { [name: string]: string } {
  return {
    'content-type': 'application/json',
    accept: 'text/event-stream',
    // A gateway that compresses would also collect.
    'accept-encoding': 'identity',
    'user-agent': 'retry-safe',
    'idempotency-key': call.idempotencyKey,
    ...(call.traceparent === undefined ? {} : { traceparent: call.traceparent }),
    ...(apiKey ? { authorization: `Bearer ${apiKey}` } : {}),
  };
}

function bodyOf(call: ModelCall, model: string): string {
  return JSON.stringify({
    model,
    messages: [{ role: 'user', content: call.prompt }],
    max_tokens: call.maxTokens,
    temperature: call.temperature,
    stream: true,
    stream_options: { include_usage: true },
  });
}

async function* readStream(response: IncomingMessage, signal: AbortSignal, read: Read): AsyncGenerator<Piece> {
  const parser = createEventParser();
  let finish: Finish | undefined;
  let usage: Usage | undefined;
  let isDone = false;
  let grace: NodeJS.Timeout | undefined;
  try {
    reading: for await (const bytes of readBytes(response, signal)) {
      for (const { data } of parser.push(bytes)) {
        if (data === '[DONE]') {
          isDone = true;
          break reading;
        }
        const said = read(data);
        usage = said.usage ?? usage;
        yield { kind: 'text', text: said.text };
        finish = said.finish ?? finish;
        signal.throwIfAborted();
      }
      if (finish !== undefined) grace ??= setTimeout(() => response.destroy(), USAGE_GRACE_MS);
    }
  } catch (error) {
    // Behind the reason of the end nothing can spoil the answer any more: cut, silence, abort.
    if (finish === undefined) throw error instanceof RangeError ? garbled() : error;
  } finally {
    clearTimeout(grace);
  }
  if (finish === undefined && !isDone) throw cutOff();
  yield endOf(finish, usage);
}

/** A server that does not stream answers in one piece; it is paid, so it counts. */
async function* readWhole(response: IncomingMessage, signal: AbortSignal, read: Read): AsyncGenerator<Piece> {
  const parts: Uint8Array[] = [];
  let held = 0;
  for await (const bytes of readBytes(response, signal)) {
    parts.push(bytes);
    held += bytes.length;
    if (held > MAX_WHOLE_BYTES) throw garbled();
  }
  const { text, finish, usage } = read(Buffer.concat(parts).toString());
  if (finish === undefined) throw garbled();
  yield { kind: 'text', text, tokens: usage?.completionTokens ?? estimatePromptTokens(text) };
  yield endOf(finish, usage);
}

function endOf(finish: Finish = 'stop', usage: Usage | undefined): Piece {
  return { kind: 'end', finish, ...(usage === undefined ? {} : { usage }) };
}

async function readDetail(response: IncomingMessage, signal: AbortSignal): Promise<string> {
  const grace = setTimeout(() => response.destroy(), DETAIL_GRACE_MS);
  const decoder = new TextDecoder();
  let text = '';
  try {
    for await (const bytes of readBytes(response, signal)) {
      text += decoder.decode(bytes, { stream: true });
      if (text.length > MAX_DETAIL_READ) break;
    }
  } catch {
    // The status alone decides; half a body is enough for the log.
  } finally {
    clearTimeout(grace);
  }
  return text;
}

function otherProtocol(type: string): ModelError {
  return new ModelError({
    kind: 'final',
    code: 'upstream_failed',
    message: 'What answers at the address of the model provider does not speak its protocol.',
    detail: `Content-Type ${type}`,
  });
}
