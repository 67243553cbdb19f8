import type { ServerResponse } from 'node:http';
import type { EndingFault } from '../../src/llm/directives.ts';
import type { Plan } from '../../src/llm/plan.ts';
import { play, systemClock } from '../../src/llm/play.ts';
import type { CallCounter } from './stats.ts';
import * as wire from './wire.ts';

/** Finer than any reader sees. */
const TICK_MS = 5;

/** One call to be answered. */
export type Answering = {
  readonly plan: Plan;
  readonly chat: wire.ChatRequest;
  readonly head: wire.AnswerHead;
  readonly response: ServerResponse;
  /** Fires when the client is gone. */
  readonly signal: AbortSignal;
  readonly counter: CallCounter;
};

/** Acts a plan out on the wire, as a stream or in one piece, and tells how it ended. Rejects when the client is gone. */
export async function answer({ plan, chat, head, response, signal, counter }: Answering) {
  let begun = false;
  const out = chat.isStream ? streamed(chat, head, response) : inOnePiece(head, response);
  for await (const step of play(plan, { signal, clock: systemClock, tickMs: () => TICK_MS })) {
    switch (step.kind) {
      case 'tokens':
        if (!begun) counter.prompt(plan.usage.promptTokens);
        begun = true;
        for (const token of step.tokens) {
          counter.completion(1);
          await out.token(token);
        }
        break;
      case 'end':
        await out.end(plan);
        return 'answered';
      case 'fault':
        return await fail(step.fault, out, response);
    }
  }
  throw signal.reason;
}

/** Answers with an error in the shape that clients of this protocol know. */
export function sendError(response: ServerResponse, status: number, message: string): void {
  const type = status === 429 ? 'rate_limit_error' : status < 500 ? 'invalid_request_error' : 'server_error';
  response.writeHead(status, { 'Content-Type': 'application/json' });
  response.end(JSON.stringify(wire.errorBody(message, type)));
}

type Out = {
  token(text: string): Promise<void>;
  end(plan: Plan): Promise<void>;
  /** Says in the middle of an answer that it failed. */
  error(): Promise<void>;
  /** Leaves off in the middle, if anything was said at all. */
  cut(): Promise<void>;
};

function streamed(chat: wire.ChatRequest, head: wire.AnswerHead, response: ServerResponse): Out {
  async function say(text: string): Promise<void> {
    if (!response.headersSent) {
      response.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8', 'Cache-Control': 'no-cache' });
      await write(response, wire.formatChunk(head, { role: 'assistant', content: '' }));
    }
    await write(response, text);
  }
  return {
    token: (content) => say(wire.formatChunk(head, { content })),
    async end({ finish, usage, tellsUsage }) {
      await say(wire.formatChunk(head, { finish }));
      if (chat.includeUsage && tellsUsage) await say(wire.formatUsageChunk(head, usage));
      response.end(wire.DONE);
    },
    async error() {
      await say(wire.formatData(wire.errorBody('The stub was told to fail in mid-stream.', 'server_error')));
      response.end();
    },
    cut: async () => {},
  };
}

function inOnePiece(head: wire.AnswerHead, response: ServerResponse): Out {
  let text = '';
  const format = (plan?: Plan) => {
    const usage = plan?.tellsUsage ? plan.usage : undefined;
    return wire.formatCompletion(head, { text, finish: plan?.finish ?? 'stop', usage });
  };
  const open = () => response.writeHead(200, { 'Content-Type': 'application/json' });
  return {
    async token(more) {
      text += more;
    },
    async end(plan) {
      open().end(format(plan));
    },
    async error() {
      sendError(response, 500, 'The stub was told to fail in the middle.');
    },
    async cut() {
      if (text !== '') await write(open(), format().slice(0, -2));
    },
  };
}

async function fail(fault: EndingFault, out: Out, response: ServerResponse) {
  switch (fault.kind) {
    case 'status':
      if (fault.retryAfterSeconds !== undefined) response.setHeader('Retry-After', String(fault.retryAfterSeconds));
      sendError(response, fault.status, 'The stub was told to fail.');
      return 'failed';
    case 'error':
      await out.error();
      return 'failed';
    case 'cut':
    case 'refused':
      await out.cut();
      response.destroy();
      return 'cut';
  }
}

/** Resolves when the bytes have left: a slow reader slows the answer down, and nothing said before a cut is lost. */
function write(response: ServerResponse, text: string): Promise<void> {
  return new Promise((resolve, reject) => response.write(text, (error) => (error ? reject(error) : resolve())));
}
