import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { setImmediate as settled } from 'node:timers/promises';
import type { Clock } from '../../src/llm/play.ts';
import { runModel } from '../../src/llm/run.ts';
import { createSimulatedProvider } from '../../src/llm/simulated.ts';
import { callOf, LATENCY_MS, TOKENS, testProvider } from './provider-contract.ts';

testProvider('simulated', async () => {
  const provider = createSimulatedProvider({ latencyMs: LATENCY_MS, tokens: TOKENS });
  return {
    provider,
    calls: () => provider.stats().calls,
    idle: async () => assert.equal(provider.stats().active, 0),
  };
});

test('a simulated model that refuses the connection was not sent the call', async () => {
  const provider = createSimulatedProvider({ latencyMs: 10, tokens: 3 });
  const run = await runModel(provider, callOf('[[refused]]'), { timeoutMs: 1_000 });
  assert.ok(run.kind === 'failed');
  assert.deepEqual([run.error.kind, run.error.code, run.sent], ['retryable', 'upstream_failed', false]);
  assert.equal(provider.stats().calls, 0);
});

test('simulated tokens are spread evenly and the last one comes after exactly the latency', async () => {
  const clock = fakeClock();
  const provider = createSimulatedProvider({ latencyMs: 1_000, tokens: 64, clock });
  const times: number[] = [];
  for await (const piece of provider.generate(callOf('Evenly.'))) if (piece.kind === 'text') times.push(clock.now());
  assert.deepEqual(
    times,
    Array.from({ length: 64 }, (_, index) => ((index + 1) * 1_000) / 64),
  );
});

test('a simulated call wakes once in ten milliseconds and then brings all tokens that are due', async () => {
  const clock = fakeClock();
  const provider = createSimulatedProvider({ latencyMs: 100, tokens: 1_000, clock });
  const counts: number[] = [];
  for await (const piece of provider.generate(callOf('Fast.', { maxTokens: 1_000 }))) {
    if (piece.kind === 'text') counts.push(piece.tokens ?? 1);
  }
  assert.equal(
    counts.reduce((sum, count) => sum + count),
    1_000,
  );
  assert.ok(counts.length >= 9 && counts.length <= 11, `${counts.length} wakes`);
  assert.equal(clock.now(), 100);
});

test('the first byte of a simulated answer can be delayed without delaying the last', async () => {
  const clock = fakeClock();
  const provider = createSimulatedProvider({ latencyMs: 1_000, tokens: 10, clock });
  const times: number[] = [];
  for await (const piece of provider.generate(callOf('[[first:800]]')))
    if (piece.kind === 'text') times.push(clock.now());
  assert.deepEqual(times, [800, 900, 1_000]);
});

test('the more simulated calls run, the less often each wakes up', async () => {
  const clock = sharedClock();
  const provider = createSimulatedProvider({ latencyMs: 200, tokens: 64, clock });
  let wakes = 0;
  const runs = Array.from({ length: 1_000 }, (_, i) =>
    runModel(provider, callOf('Many.', { idempotencyKey: `rs-${i}` }), {
      timeoutMs: 60_000,
      onPiece: () => void wakes++,
    }),
  );
  await clock.runOut();
  assert.ok((await Promise.all(runs)).every((run) => run.kind === 'answered' && run.usage.completionTokens === 64));
  assert.equal(clock.now(), 200);
  // 1,000 calls share 20,000 wakes a second: about four each in 200 ms, where a single call has twenty.
  assert.ok(wakes <= 6_000, `${wakes} wakes`);
});

test('a simulated call keeps one listener on its signal while it runs, and no timer once it is aborted', async () => {
  const provider = createSimulatedProvider({ latencyMs: 100, tokens: 10 });
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const stop = new AbortController();
  const before = timers();
  let most = 0;
  for await (const _ of provider.generate(callOf('x', { signal: stop.signal }))) {
    most = Math.max(most, getEventListeners(stop.signal, 'abort').length);
  }
  assert.equal(most, 0, 'none is left by a sleep that is over');
  const aborted = provider
    .generate(callOf('[[slow:60000]] [[tokens:1]]', { signal: stop.signal }))
    [Symbol.asyncIterator]();
  const next = aborted.next();
  assert.equal(timers(), before + 1);
  stop.abort(new Error('enough'));
  await assert.rejects(next, /enough/);
  assert.equal(timers(), before);
});

/** A clock that stands still but for the sleepers: one call at a time. */
function fakeClock(): Clock {
  let nowMs = 0;
  return {
    now: () => nowMs,
    sleep: async (ms) => {
      nowMs += ms;
    },
  };
}

/** A clock for many sleepers: time goes on to the next one when nobody has anything else to do. */
function sharedClock(): Clock & { runOut(): Promise<void> } {
  let nowMs = 0;
  let sleepers: { readonly atMs: number; readonly wake: () => void }[] = [];
  return {
    now: () => nowMs,
    sleep: (ms) => new Promise((wake) => void sleepers.push({ atMs: nowMs + ms, wake })),
    async runOut() {
      for (await settled(); sleepers.length > 0; await settled()) {
        nowMs = Math.min(...sleepers.map(({ atMs }) => atMs));
        const due = sleepers.filter(({ atMs }) => atMs <= nowMs);
        sleepers = sleepers.filter(({ atMs }) => atMs > nowMs);
        for (const { wake } of due) wake();
      }
    },
  };
}
