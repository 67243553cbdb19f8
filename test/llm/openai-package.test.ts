import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import OpenAI from 'openai';
import { type LlmStub, startLlmStub } from '../../scripts/llm-stub/server.ts';
import { atEnd } from '../helpers/cleanup.ts';

async function clientOf(t: TestContext): Promise<{ stub: LlmStub; client: OpenAI }> {
  const stub = await startLlmStub({ latencyMs: 30, tokens: 10, apiKey: 'sk-stub' });
  atEnd(t, stub.close);
  return { stub, client: new OpenAI({ baseURL: stub.url, apiKey: 'sk-stub', maxRetries: 2 }) };
}

const ask = (content: string) => ({ model: 'stub', messages: [{ role: 'user' as const, content }] });

test('the openai package reads a whole answer of the stub', async (t) => {
  const { stub, client } = await clientOf(t);
  const { data, response, request_id } = await client.chat.completions.create(ask('abcd')).withResponse();
  assert.equal(response.status, 200);
  assert.equal(request_id, 'req_1');
  assert.equal(data.choices[0]?.finish_reason, 'stop');
  assert.equal(data.choices[0]?.message.content?.split(' ').length, 10);
  assert.deepEqual(data.usage, { prompt_tokens: 1, completion_tokens: 10, total_tokens: 11 });
  assert.equal(stub.stats().calls, 1);
});

test('the openai package reads a streamed answer of the stub, with its usage at the end', async (t) => {
  const { client } = await clientOf(t);
  const stream = await client.chat.completions.create({
    ...ask('[[text:surrogate]]'),
    max_tokens: 4,
    stream: true,
    stream_options: { include_usage: true },
  });
  const texts: string[] = [];
  const ends: unknown[] = [];
  for await (const { choices, usage } of stream) {
    texts.push(choices[0]?.delta.content ?? '');
    if (choices[0]?.finish_reason) ends.push(choices[0].finish_reason);
    if (usage) ends.push(usage.completion_tokens);
  }
  assert.deepEqual(ends, ['length', 4]);
  assert.match(texts.join(''), /\udfff\?\ud800/);
  assert.equal(texts.filter((text) => text !== '').length, 4);
});

test('the streaming helper of the openai package collects the stub’s answer', async (t) => {
  const { client } = await clientOf(t);
  const whole = await client.chat.completions.stream(ask('x')).finalChatCompletion();
  assert.equal(whole.choices[0]?.message.content?.split(' ').length, 10);
});

test('the openai package finds the stub’s models', async (t) => {
  const { client } = await clientOf(t);
  const ids: string[] = [];
  for await (const model of client.models.list()) ids.push(model.id);
  assert.deepEqual(ids, ['stub']);
});

test('the openai package tries a 500, a 429 and a cut connection again and gets its answer from the stub', async (t) => {
  for (const fault of ['fail:500', 'fail:429:1', 'cut']) {
    const { stub, client } = await clientOf(t);
    const answer = await client.chat.completions.create(ask(`[[${fault} times=1]]`), {
      headers: { 'Idempotency-Key': 'k-1' },
    });
    assert.equal(answer.choices[0]?.finish_reason, 'stop');
    assert.equal(stub.stats().by_key['k-1']?.calls, 2, fault);
    assert.equal(stub.stats().outcomes.answered, 1);
  }
});

test('the openai package makes errors of its own of the stub’s', async (t) => {
  const { stub, client } = await clientOf(t);
  await assert.rejects(client.chat.completions.create(ask('[[fail:400]]')), OpenAI.BadRequestError);
  await assert.rejects(client.chat.completions.create(ask('[[fail:429]]'), { maxRetries: 0 }), OpenAI.RateLimitError);
  await assert.rejects(async () => {
    for await (const _ of await client.chat.completions.create({ ...ask('[[error:2]]'), stream: true }));
  }, /told to fail in mid-stream/);
  const stranger = client.withOptions({ apiKey: 'wrong' });
  await assert.rejects(stranger.chat.completions.create(ask('x')), OpenAI.AuthenticationError);
  assert.equal(stub.stats().calls, 3);
});
