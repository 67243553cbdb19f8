import { setTimeout as sleep } from 'node:timers/promises';
import type { ModelCall, Piece, Provider } from '../../src/llm/provider.ts';

/**
 * The machine's monotonic clock in milliseconds with their fractions, the same for all of its processes. The time of day is
 * not: each process adds its own start to it, and it is set right in between.
 */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** The times that a text of the clock model consists of. */
export function timesIn(text: string): number[] {
  return text.split(' ').filter(Boolean).map(Number);
}

/**
 * A model that tells the time: each token is the moment at which it was said, so that a reader knows how long it was on its
 * way.
 */
export function createClockModel(latencyMs: number, tokens: number): Provider {
  async function* generate(call: ModelCall): AsyncGenerator<Piece> {
    call.onSent?.();
    const startedMs = performance.now();
    for (let n = 1; n <= tokens; n += 1) {
      const waitMs = startedMs + (n / tokens) * latencyMs - performance.now();
      if (waitMs > 0) await sleep(waitMs, undefined, { signal: call.signal });
      yield { kind: 'text', text: `${machineMs().toFixed(2)} `, tokens: 1 };
    }
    yield { kind: 'end', finish: 'stop', usage: { promptTokens: 1, completionTokens: tokens } };
  }
  return { name: 'clock', generate };
}
