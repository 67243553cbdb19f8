import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withCache } from '../../src/llm/cache.ts';
import type { ModelCall } from '../../src/llm/provider.ts';
import { runModel } from '../../src/llm/run.ts';
import { createSimulatedProvider } from '../../src/llm/simulated.ts';
import { callOf } from './provider-contract.ts';

const roomy = { maxEntries: 100, maxBytes: 1_000_000 };

function cached(options = roomy) {
  const model = createSimulatedProvider({ latencyMs: 0, tokens: 10 });
  const provider = withCache(model, options);
  return {
    calls: () => model.stats().calls,
    ask: (prompt: string, more: Partial<ModelCall> = {}) =>
      runModel(provider, callOf(prompt, { temperature: 0, cacheScope: 'acme', ...more }), { timeoutMs: 5_000 }),
  };
}

test('the second of two equal questions at temperature 0 comes from the cache, costs nothing and is no attempt', async () => {
  const { ask, calls } = cached();
  const first = await ask('Why?');
  const second = await ask('Why?', { idempotencyKey: 'rs-other' });
  assert.equal(calls(), 1);
  assert.ok(first.kind === 'answered' && second.kind === 'answered');
  assert.deepEqual([first.cached, second.cached], [false, true]);
  assert.deepEqual([second.text, second.finish], [first.text, first.finish]);
  assert.deepEqual([first.sent, second.sent], [true, false]);
  assert.deepEqual(second.usage, { promptTokens: 0, completionTokens: 0, estimated: false });
});

test('what may differ is asked for again', async () => {
  const others: [string, Partial<ModelCall>][] = [
    ['another prompt', {}],
    ['Why?', { maxTokens: 5 }],
    ['Why?', { cacheScope: 'globex' }],
    ['Why?', { temperature: 0.1 }],
  ];
  for (const [prompt, more] of others) {
    const { ask, calls } = cached();
    await ask('Why?');
    await ask(prompt, more);
    assert.equal(calls(), 2, JSON.stringify([prompt, more]));
  }
});

test('a call without temperature or without scope goes past the cache both ways', async () => {
  const { ask, calls } = cached();
  const provider = withCache(createSimulatedProvider({ latencyMs: 0, tokens: 3 }), roomy);
  for (let i = 0; i < 2; i++) {
    const run = await runModel(provider, callOf('Why?', { temperature: 0 }), { timeoutMs: 5_000 });
    assert.ok(run.kind === 'answered' && !run.cached);
  }
  await ask('Why?', { temperature: 1 });
  await ask('Why?', { temperature: 1 });
  assert.equal(calls(), 2);
});

test('only whole answers are kept', async () => {
  const { ask, calls } = cached();
  assert.equal((await ask('[[cut:3 times=1]]')).kind, 'failed');
  assert.equal((await ask('[[cut:3 times=1]]')).kind, 'answered');
  assert.equal((await ask('[[cut:3 times=1]]')).kind, 'answered');
  assert.equal(calls(), 2);
});

test('beyond its bounds the cache forgets what was not used for longest', async () => {
  const { ask, calls } = cached({ maxEntries: 2, maxBytes: 1_000_000 });
  for (const prompt of ['a', 'b', 'a', 'c']) await ask(prompt);
  assert.equal(calls(), 3);
  await ask('a');
  assert.equal(calls(), 3, 'a was used after b');
  await ask('b');
  assert.equal(calls(), 4);
});

test('the cache holds no more text than it may, and no answer that is larger than that', async () => {
  const { ask, calls } = cached({ maxEntries: 100, maxBytes: 2_500 });
  for (const prompt of ['[[text:long:1000]] a', '[[text:long:1000]] b', '[[text:long:1000]] b']) await ask(prompt);
  assert.equal(calls(), 2);
  await ask('[[text:long:1000]] a');
  assert.equal(calls(), 3, 'b displaced a');
  await ask('[[text:long:2000]]');
  await ask('[[text:long:2000]]');
  assert.equal(calls(), 5);
  await ask('[[text:long:1000]] a');
  assert.equal(calls(), 5, 'the large one displaced nothing');
});
