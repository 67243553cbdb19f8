import { createAttempts } from './attempts.ts';
import type { EndingFault } from './directives.ts';
import { cutOff, failedInMidStream, failureOfStatus, notReached } from './failures.ts';
import { planAnswer } from './plan.ts';
import { type Clock, play, systemClock } from './play.ts';
import type { ModelCall, ModelError, Piece, Provider } from './provider.ts';

/** Most often that a call wakes up: finer than a reader sees. */
const MIN_TICK_MS = 10;
/** Wakes a second of all calls together; more calls wake less often each and bring more tokens at a time. */
const MAX_WAKES_PER_SECOND = 20_000;

export type SimulatedOptions = {
  /** From the call to the last token. */
  readonly latencyMs: number;
  /** Tokens an answer; each is a piece, unless they follow one another within a tick. */
  readonly tokens: number;
  readonly clock?: Clock;
};

/** The simulated model and what it has seen so far. */
export type SimulatedProvider = Provider & {
  stats(): { readonly calls: number; readonly active: number; readonly completionTokens: number };
};

/**
 * A model in this process: slow, and the same words for the same prompt and key (at temperature 0: for the same prompt).
 * The prompt can tell it to fail, stall, break off or write awkward text: `parseDirectives` has the table.
 */
export function createSimulatedProvider(options: SimulatedOptions): SimulatedProvider {
  const { latencyMs, tokens: tokenCount, clock = systemClock } = options;
  const attempts = createAttempts();
  const stats = { calls: 0, active: 0, completionTokens: 0 };
  const tickMs = () => Math.max(MIN_TICK_MS, (stats.active * 1_000) / MAX_WAKES_PER_SECOND);

  async function* generate(call: ModelCall): AsyncGenerator<Piece> {
    call.signal.throwIfAborted();
    const plan = planAnswer({
      prompt: call.prompt,
      maxTokens: call.maxTokens,
      seed: call.temperature === 0 ? '' : call.idempotencyKey,
      attempt: attempts.next(call.idempotencyKey),
      latencyMs,
      tokenCount,
    });
    if (plan.fault?.kind === 'refused') throw notReached();
    call.onSent?.();
    stats.calls++;
    stats.active++;
    try {
      for await (const step of play(plan, { signal: call.signal, clock, tickMs })) {
        if (step.kind === 'fault') throw errorOf(step.fault);
        if (step.kind === 'end') {
          yield { kind: 'end', finish: plan.finish, ...(plan.tellsUsage ? { usage: plan.usage } : {}) };
          return;
        }
        stats.completionTokens += step.tokens.length;
        yield { kind: 'text', text: step.tokens.join(''), tokens: step.tokens.length };
        call.signal.throwIfAborted();
      }
    } finally {
      stats.active--;
    }
  }

  return { name: 'simulated', generate, stats: () => ({ ...stats }) };
}

function errorOf(fault: EndingFault): ModelError {
  switch (fault.kind) {
    case 'status': {
      const wait = fault.retryAfterSeconds;
      const headers = wait === undefined ? {} : { 'retry-after': String(wait) };
      return failureOfStatus({ status: fault.status, headers }, 0);
    }
    case 'refused':
      return notReached();
    case 'cut':
      return cutOff();
    case 'error':
      return failedInMidStream();
  }
}
