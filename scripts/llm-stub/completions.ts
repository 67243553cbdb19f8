import type { IncomingMessage, ServerResponse } from 'node:http';
import { createAttempts } from '../../src/llm/attempts.ts';
import { type Plan, planAnswer } from '../../src/llm/plan.ts';
import { answer, sendError } from './answer.ts';
import { createReplays } from './replays.ts';
import type { CallCounter, createStats, Outcome } from './stats.ts';
import { type ChatRequest, parseChatRequest } from './wire.ts';

/** How the stub answers; `StubOptions` says what each means. */
export type Behaviour = {
  readonly latencyMs: number;
  readonly tokens: number;
  readonly directives: string;
  readonly failRate: number;
  readonly seed: number;
  readonly dedupe: boolean;
  readonly onEnd: (line: string) => void;
};

/** What `failRate` draws from. */
const FAULTS = ['fail:500', 'fail:429:1', 'fail:503:1', 'cut', 'cut:5', 'error:3', 'stall-after:3'];

const FREE: CallCounter = { prompt() {}, completion() {}, end() {} };

/** `POST /v1/chat/completions`: counts the call, decides what becomes of it, acts it out. */
export function createCompletions(behaviour: Behaviour, stats: ReturnType<typeof createStats>) {
  let attempts = createAttempts();
  let replays = createReplays();
  let random = drawFrom(behaviour.seed);
  let scripted: string[] = [];
  let serial = 0;

  function planOf(chat: ChatRequest, key: string | null): Plan {
    const drawn = random() < behaviour.failRate ? `[[${FAULTS[Math.floor(random() * FAULTS.length)]}]]` : '';
    return planAnswer({
      prompt: chat.prompt,
      directives: { before: behaviour.directives + drawn, after: scripted.shift() ?? '' },
      maxTokens: chat.maxTokens,
      seed: chat.temperature === 0 ? '' : (key ?? String(serial)),
      attempt: attempts.next(key ?? `without key ${serial}`),
      latencyMs: behaviour.latencyMs,
      tokenCount: behaviour.tokens,
    });
  }

  async function run(
    chat: ChatRequest,
    key: string | null,
    response: ServerResponse,
    counter: CallCounter,
  ): Promise<Outcome> {
    const gone = new AbortController();
    response.once('close', () => gone.abort(new Error('The client is gone.')));
    const head = { id: `chatcmpl-${serial}`, created: Math.floor(Date.now() / 1_000), model: chat.model };
    const call = { chat, head, response, signal: gone.signal };
    const opened = behaviour.dedupe && key !== null ? replays.open(key, chat.digest) : undefined;
    if (opened?.kind === 'refused') {
      if (opened.status === 409) response.setHeader('Retry-After', '1');
      sendError(response, opened.status, opened.message);
      return 'failed';
    }
    let outcome: Outcome = 'client_closed';
    try {
      if (opened?.kind === 'known') {
        await answer({ ...call, plan: opened.plan, counter: FREE });
        outcome = 'replayed';
      } else {
        const plan = planOf(chat, key);
        outcome = await answer({ ...call, plan, counter });
        if (outcome === 'answered' && opened !== undefined) opened.keep(plan);
      }
    } catch (error) {
      if (!response.destroyed) throw error;
    } finally {
      if (opened?.kind === 'first' && outcome !== 'answered') opened.forget();
    }
    return outcome;
  }

  return {
    async handle(request: IncomingMessage, response: ServerResponse, body: string): Promise<void> {
      const chat = parseChatRequest(body);
      if (typeof chat === 'string') return sendError(response, 400, chat);
      const key = single(request.headers['idempotency-key']);
      const traceparent = single(request.headers.traceparent);
      const counter = stats.begin({ idempotency_key: key, traceparent, model: chat.model, stream: chat.isStream });
      serial++;
      response.setHeader('x-request-id', `req_${serial}`);
      const line = `call ${serial}, key ${key ?? 'none'}`;
      let outcome: Outcome = 'failed';
      try {
        outcome = await run(chat, key, response, counter);
      } finally {
        counter.end(outcome);
        behaviour.onEnd(`${line}: ${outcome}`);
      }
    },
    /** Directives for the next calls, one each. */
    script(next: readonly string[]): void {
      scripted = [...next];
    },
    reset(): void {
      attempts = createAttempts();
      replays = createReplays();
      random = drawFrom(behaviour.seed);
      scripted = [];
    },
  };
}

function single(value: string | string[] | undefined): string | null {
  return typeof value === 'string' ? value : null;
}

/** A linear congruential generator (Numerical Recipes): enough to draw faults. */
function drawFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 4_294_967_296;
  };
}
