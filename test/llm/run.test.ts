import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { type ModelCall, ModelError, type Piece, type Provider } from '../../src/llm/provider.ts';
import { runModel } from '../../src/llm/run.ts';
import { createSimulatedProvider } from '../../src/llm/simulated.ts';
import { callOf } from './provider-contract.ts';

function providerOf(generate: (call: ModelCall) => AsyncIterable<Piece>): Provider {
  return { name: 'by hand', generate };
}

test('an answer that stops without an end is cut off, however politely', async () => {
  const provider = providerOf(async function* (call) {
    call.onSent?.();
    yield { kind: 'text', text: 'half' };
  });
  const run = await runModel(provider, callOf('x'), { timeoutMs: 1_000 });
  assert.ok(run.kind === 'failed');
  assert.deepEqual([run.error.kind, run.text, run.usage.completionTokens], ['unknown', 'half', 1]);
});

test('a time-out before the call was sent leaves nothing unknown', async () => {
  const provider = providerOf(async function* (call): AsyncGenerator<Piece> {
    await new Promise((_, reject) => call.signal.addEventListener('abort', () => reject(call.signal.reason)));
  });
  const run = await runModel(provider, callOf('x'), { timeoutMs: 60 });
  assert.ok(run.kind === 'failed');
  assert.deepEqual([run.error.kind, run.error.code, run.sent], ['retryable', 'upstream_timeout', false]);
  assert.deepEqual([run.error.mayRetry, run.error.outcomeUnknown], [true, false]);
});

test('a time-out is told as one, whatever the provider throws for an abort', async () => {
  const provider = providerOf(async function* (call): AsyncGenerator<Piece> {
    call.onSent?.();
    await pause(60_000, undefined, { signal: call.signal });
    yield { kind: 'text', text: 'too late' };
  });
  const run = await runModel(provider, callOf('x'), { timeoutMs: 60 });
  assert.ok(run.kind === 'failed');
  assert.deepEqual([run.error.kind, run.error.code], ['unknown', 'upstream_timeout']);
  const reason = new ModelError({ kind: 'final', code: 'upstream_failed', message: 'the caller’s own' });
  const aborted = await runModel(provider, callOf('x', { signal: AbortSignal.abort(reason) }), { timeoutMs: 60 });
  assert.equal(aborted.kind, 'aborted');
});

test('an answer that is complete when the time is up is an answer', async () => {
  const provider = providerOf(async function* (call): AsyncGenerator<Piece> {
    yield { kind: 'text', text: 'done' };
    await new Promise<void>((resolve) => call.signal.addEventListener('abort', () => resolve()));
    yield { kind: 'end', finish: 'stop' };
  });
  const run = await runModel(provider, callOf('x'), { timeoutMs: 60 });
  assert.deepEqual([run.kind, run.text], ['answered', 'done']);
});

test('an empty text is a sign of life: neither handed on nor counted', async () => {
  const provider = providerOf(async function* (call): AsyncGenerator<Piece> {
    for (let i = 0; i < 12; i++) {
      await pause(40, undefined, { signal: call.signal });
      yield { kind: 'text', text: '' };
    }
    yield { kind: 'text', text: 'At last.' };
    yield { kind: 'end', finish: 'stop' };
  });
  const texts: string[] = [];
  // 480 ms without a word, where 300 ms of silence would have ended the call.
  const run = await runModel(provider, callOf('x'), { timeoutMs: 900, onPiece: (text) => void texts.push(text) });
  assert.equal(run.kind, 'answered');
  assert.deepEqual(texts, ['At last.']);
  assert.equal(run.usage.completionTokens, 1);
});

test('a slow taker of pieces is waited for and is no silence', async () => {
  const provider = createSimulatedProvider({ latencyMs: 20, tokens: 2 });
  const texts: string[] = [];
  const run = await runModel(provider, callOf('x'), {
    timeoutMs: 900,
    onPiece: async (text) => {
      await pause(350);
      texts.push(text);
    },
  });
  assert.equal(run.kind, 'answered');
  assert.equal(texts.join(''), run.text);
});

test('a taker that throws ends the call as aborted, with its own error and what was used', async () => {
  const provider = createSimulatedProvider({ latencyMs: 20, tokens: 2 });
  const reason = new Error('fenced out');
  const run = await runModel(provider, callOf('[[stall-after:1]]'), {
    timeoutMs: 5_000,
    onPiece: async () => {
      throw reason;
    },
  });
  assert.ok(run.kind === 'aborted');
  assert.equal(run.reason, reason);
  assert.deepEqual([run.sent, run.usage.completionTokens], [true, 1]);
  assert.equal(provider.stats().active, 0);
});

test('a failure of the provider is told even when a taker threw a ModelError of its own', async () => {
  const provider = createSimulatedProvider({ latencyMs: 20, tokens: 2 });
  const reason = new ModelError({ kind: 'final', code: 'upstream_failed', message: 'not the provider' });
  const run = await runModel(provider, callOf('x'), {
    timeoutMs: 5_000,
    onPiece: () => {
      throw reason;
    },
  });
  assert.equal(run.kind, 'aborted');
});

test('an abort keeps the text and the tokens that came before it', async () => {
  const provider = createSimulatedProvider({ latencyMs: 20, tokens: 4 });
  // Of the provider's kind, and yet not its doing.
  const reason = new ModelError({ kind: 'final', code: 'upstream_failed', message: 'a newer version is there' });
  const stop = new AbortController();
  let count = 0;
  const run = await runModel(provider, callOf('[[stall-after:3]]', { signal: stop.signal }), {
    timeoutMs: 5_000,
    onPiece: (text) => {
      count += text.trim().split(' ').length;
      if (count === 3) stop.abort(reason);
    },
  });
  assert.ok(run.kind === 'aborted');
  assert.equal(run.reason, reason);
  assert.equal(run.usage.completionTokens, 3);
  assert.equal(run.text.split(' ').length, 3);
});

test('a fault of the code is thrown and not taken for the provider’s', async () => {
  const provider = providerOf(async function* (): AsyncGenerator<Piece> {
    yield { kind: 'text', text: 'a' };
    throw new TypeError('undefined is not a function');
  });
  await assert.rejects(runModel(provider, callOf('x'), { timeoutMs: 1_000 }), TypeError);
});

test('an answer without end is cut at four million characters and counts as length', async () => {
  let closed = false;
  const provider = providerOf(async function* (): AsyncGenerator<Piece> {
    try {
      for (;;) yield { kind: 'text', text: 'x'.repeat(100_000) };
    } finally {
      closed = true;
    }
  });
  const run = await runModel(provider, callOf('x'), { timeoutMs: 30_000 });
  assert.ok(run.kind === 'answered');
  assert.equal(run.finish, 'length');
  assert.ok(run.text.length >= 4_194_304 && run.text.length < 4_400_000);
  assert.ok(closed);
});

test('no listener stays on the caller’s signal, whatever the end', async () => {
  const provider = createSimulatedProvider({ latencyMs: 10, tokens: 2 });
  const { signal } = new AbortController();
  for (const prompt of ['fine', '[[fail:500]]', '[[cut:1]]', '[[stall]]']) {
    await runModel(provider, callOf(prompt, { signal }), { timeoutMs: 90 });
    assert.equal(getEventListeners(signal, 'abort').length, 0, prompt);
  }
});
