import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'node:test';
import { createOpenAiProvider } from '../../src/llm/openai.ts';
import type { ModelError } from '../../src/llm/provider.ts';
import { type ModelRun, runModel } from '../../src/llm/run.ts';
import { atEnd } from '../helpers/cleanup.ts';
import { callOf } from './provider-contract.ts';
import { chunk, providerAt, stream, usage } from './wire.ts';

const timeoutMs = 10_000;
const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

function failureOf(run: ModelRun): ModelError {
  assert.ok(run.kind === 'failed', run.kind);
  return run.error;
}

test('key, trace, model and bounds reach the provider, and its address keeps its query', async (t) => {
  const { provider, requests } = await providerAt(t, (response) => stream(response).end(chunk('ok', 'stop')), {
    apiKey: 'sk-secret',
    path: '/openai/v1/?api-version=7',
  });
  await runModel(provider, callOf('Hi \ud800', { traceparent, temperature: 0, maxTokens: 7 }), { timeoutMs });
  const { headers, url, method, body } = requests[0]!;
  assert.deepEqual([method, url], ['POST', '/openai/v1/chat/completions?api-version=7']);
  assert.equal(headers['idempotency-key'], 'rs-contract');
  assert.equal(headers.traceparent, traceparent);
  assert.equal(headers.authorization, 'Bearer sk-secret');
  assert.equal(headers.accept, 'text/event-stream');
  assert.deepEqual(JSON.parse(body), {
    model: 'm',
    messages: [{ role: 'user', content: 'Hi \ud800' }],
    max_tokens: 7,
    temperature: 0,
    stream: true,
    stream_options: { include_usage: true },
  });
});

test('without a key, a trace and a temperature nothing is said of them', async (t) => {
  const { provider, requests } = await providerAt(t, (response) => stream(response).end(chunk('ok', 'stop')));
  await runModel(provider, callOf('Hi'), { timeoutMs });
  const { headers, body } = requests[0]!;
  assert.equal('authorization' in headers || 'traceparent' in headers, false);
  assert.equal('temperature' in JSON.parse(body), false);
});

test('an answer cut anywhere into chunks, with CRLF and comments, is read the same', async (t) => {
  const text = 'é 👩‍👩‍👧 \u2028 \u0000';
  const whole = `\ufeff: hello\r\n\r\n${chunk(text)}${chunk(null, 'stop')}${usage(3, 4)}data: [DONE]\n\n`;
  const { provider } = await providerAt(t, async (response) => {
    stream(response);
    for (const byte of Buffer.from(whole.replace(/\n\n/g, '\r\n\r\n'))) response.write(Buffer.of(byte));
    response.end();
  });
  const run = await runModel(provider, callOf('x'), { timeoutMs });
  assert.deepEqual([run.kind, run.text], ['answered', text]);
  assert.deepEqual(run.usage, { promptTokens: 3, completionTokens: 4, estimated: false });
});

test('an answer ends properly with a reason, or with [DONE], and not otherwise', async (t) => {
  const endings: [string, string][] = [
    [chunk(null, 'stop'), 'answered stop'],
    [chunk(null, 'length'), 'answered length'],
    [chunk(null, 'content_filter'), 'answered stop'],
    ['data: [DONE]\n\n', 'answered stop'],
    ['', 'failed unknown'],
    [usage(1, 1), 'failed unknown'],
    ['data: [DONE', 'failed unknown'],
  ];
  for (const [ending, expected] of endings) {
    const { provider } = await providerAt(t, (response) => stream(response).end(chunk('a') + ending));
    const run = await runModel(provider, callOf('x'), { timeoutMs });
    const end = run.kind === 'answered' ? run.finish : failureOf(run).kind;
    assert.equal(`${run.kind} ${end}`, expected, JSON.stringify(ending));
    assert.equal(run.text, 'a');
  }
});

test('behind the reason of the end neither a cut nor silence nor time spoils the answer', async (t) => {
  const afterwards: ((response: import('node:http').ServerResponse) => void)[] = [
    (response) => response.destroy(),
    () => {},
    (response) => void response.write('data: {not json\n\n'),
    (response) => void response.write('data: {"error":{"message":"late"}}\n\n'),
  ];
  for (const [index, after] of afterwards.entries()) {
    const { provider } = await providerAt(t, (response) => {
      stream(response).write(chunk('whole') + chunk(null, 'stop'), () => after(response));
    });
    const run = await runModel(provider, callOf('x'), { timeoutMs: 300 });
    assert.deepEqual([run.kind, run.text, run.usage.estimated], ['answered', 'whole', true], `case ${index}`);
  }
});

test('a usage that never comes is waited for a second and no longer', async (t) => {
  const { provider, allClosed } = await providerAt(t, (response) => {
    stream(response).write(chunk('whole') + chunk(null, 'stop'));
  });
  const startedMs = performance.now();
  const run = await runModel(provider, callOf('x'), { timeoutMs: 60_000 });
  assert.equal(run.kind, 'answered');
  assert.ok(performance.now() - startedMs < 10_000);
  assert.ok(run.usage.estimated);
  await allClosed();
});

test('a server that does not stream is understood, too', async (t) => {
  const body = { choices: [{ message: { content: 'all at once' }, finish_reason: 'stop' }] };
  const { provider } = await providerAt(t, (response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ ...body, usage: { prompt_tokens: 5, completion_tokens: 6 } }));
  });
  const run = await runModel(provider, callOf('x'), { timeoutMs });
  assert.deepEqual([run.kind, run.text], ['answered', 'all at once']);
  assert.deepEqual(run.usage, { promptTokens: 5, completionTokens: 6, estimated: false });
});

test('what does not speak the protocol is final: asking again would not help', async (t) => {
  const answers: [number, string | undefined, string][] = [
    [200, 'text/html', '<h1>Welcome</h1>'],
    [200, undefined, 'x'],
    [204, undefined, ''],
    [302, 'text/html', 'elsewhere'],
    [404, 'text/plain', 'no'],
  ];
  for (const [status, type, body] of answers) {
    const { provider, requests, allClosed } = await providerAt(t, (response) => {
      response.writeHead(status, {
        ...(type === undefined ? {} : { 'content-type': type }),
        location: '/v1/elsewhere',
      });
      response.flushHeaders();
      // Not to its end, where there is one: the call must close what it does not read.
      if (status === 204) response.end();
      else response.write(body);
    });
    const run = await runModel(provider, callOf('x'), { timeoutMs });
    assert.deepEqual(
      [failureOf(run).kind, failureOf(run).mayRetry, run.sent],
      ['final', false, true],
      `${status} ${type}`,
    );
    await allClosed();
    assert.equal(requests.length, 1, 'a redirect is not followed');
  }
});

test('a broken chunk in the middle is an unknown outcome that keeps what came before', async (t) => {
  for (const broken of ['data: {"choices":\n\n', 'data: 7\n\n', `data: ${'x'.repeat(1_100_000)}\n\n`]) {
    const { provider, allClosed } = await providerAt(t, (response) => stream(response).write(chunk('a') + broken));
    const run = await runModel(provider, callOf('x'), { timeoutMs });
    assert.equal(failureOf(run).kind, 'unknown');
    assert.equal(run.text, 'a');
    await allClosed();
  }
});

test('an error in mid-stream with a status of its own is read like that status', async (t) => {
  const { provider } = await providerAt(t, (response) =>
    stream(response).end(`${chunk('a')}data: {"error":{"code":429,"message":"slow down"}}\n\n`),
  );
  const error = failureOf(await runModel(provider, callOf('x'), { timeoutMs }));
  assert.deepEqual(
    [error.kind, error.code, error.status, error.detail],
    ['retryable', 'upstream_busy', 429, 'slow down'],
  );
});

test('Retry-After is read in each of its forms and capped at a minute', async (t) => {
  const nowMs = Date.UTC(2024, 0, 1);
  const forms: [{ [name: string]: string }, number | undefined][] = [
    [{ 'retry-after': '3' }, 3_000],
    [{ 'retry-after': 'Mon, 01 Jan 2024 00:00:20 GMT' }, 20_000],
    [{ 'retry-after': '3', 'retry-after-ms': '1500.5' }, 1_501],
    [{ 'retry-after': 'soon' }, undefined],
    [{ 'retry-after': '86400' }, 60_000],
    [{}, undefined],
  ];
  for (const [headers, expected] of forms) {
    const { provider } = await providerAt(t, (response) => response.writeHead(503, headers).end(), {
      now: () => nowMs,
    });
    const error = failureOf(await runModel(provider, callOf('x'), { timeoutMs }));
    assert.equal(error.retryAfterMs, expected, JSON.stringify(headers));
  }
});

test('the provider’s own word on a retry wins over its status', async (t) => {
  for (const [status, word, kind] of [
    [500, 'false', 'final'],
    [429, 'false', 'final'],
    [409, 'true', 'retryable'],
    [400, 'true', 'retryable'],
    [504, 'false', 'unknown'],
  ] as const) {
    const { provider } = await providerAt(t, (response) =>
      response.writeHead(status, { 'x-should-retry': word }).end(),
    );
    assert.equal(failureOf(await runModel(provider, callOf('x'), { timeoutMs })).kind, kind, `${status} ${word}`);
  }
});

test('an error answer whose body never ends fails by its status all the same', async (t) => {
  const { provider, allClosed } = await providerAt(t, (response) => response.writeHead(429).write('please wa'));
  const startedMs = performance.now();
  const error = failureOf(await runModel(provider, callOf('x'), { timeoutMs: 60_000 }));
  assert.deepEqual([error.kind, error.status, error.detail], ['retryable', 429, 'please wa']);
  assert.ok(performance.now() - startedMs < 10_000, 'the silence did not have to run out');
  await allClosed();
});

test('the API key is in no error, even when the provider repeats it', async (t) => {
  const apiKey = 'sk-very-secret-0123456789';
  for (const answer of [401, 200]) {
    const { provider } = await providerAt(
      t,
      (response) => {
        if (answer === 401) response.writeHead(401).end(`${' '.repeat(490)}${apiKey}`);
        else stream(response).end(`data: {"error":{"message":"bad key ${apiKey}"}}\n\n`);
      },
      { apiKey },
    );
    const error = failureOf(await runModel(provider, callOf('x'), { timeoutMs }));
    const said = [error.message, error.detail, error.stack, JSON.stringify(error), String(error.cause)].join();
    assert.equal(said.includes('sk-very'), false, said);
  }
  assert.throws(
    () => createOpenAiProvider({ baseUrl: 'http://127.0.0.1/v1', model: 'm', apiKey: 'sk-very\nsecret' }),
    (error: Error) => !error.message.includes('sk-very'),
  );
});

test('a provider that refuses the connection was not sent the call', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  const provider = createOpenAiProvider({ baseUrl: `http://127.0.0.1:${port}/v1`, model: 'm' });
  const run = await runModel(provider, callOf('x'), { timeoutMs });
  assert.deepEqual([failureOf(run).kind, failureOf(run).code, run.sent], ['retryable', 'upstream_failed', false]);
});

test('a connection that never comes about was not sent the call', async (t) => {
  // Accepts, and never says a word of TLS.
  const server = createServer((socket) => atEnd(t, () => socket.destroy())).listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(t, () => server.close());
  const { port } = server.address() as AddressInfo;
  const provider = createOpenAiProvider({ baseUrl: `https://127.0.0.1:${port}/v1`, model: 'm' });
  const run = await runModel(provider, callOf('x'), { timeoutMs: 300 });
  assert.deepEqual([failureOf(run).kind, failureOf(run).code, run.sent], ['retryable', 'upstream_timeout', false]);
});

test('a connection cut within the head of the answer leaves the outcome unknown', async (t) => {
  for (const head of ['', 'HTTP/1.1 200 O', 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n']) {
    const server = createServer((socket) => socket.once('data', () => socket.end(head))).listen(0, '127.0.0.1');
    await once(server, 'listening');
    atEnd(t, () => server.close());
    const { port } = server.address() as AddressInfo;
    const provider = createOpenAiProvider({ baseUrl: `http://127.0.0.1:${port}/v1`, model: 'm' });
    const run = await runModel(provider, callOf('x'), { timeoutMs });
    assert.deepEqual([failureOf(run).kind, run.sent], ['unknown', true], head);
  }
});

test('an answer that is no HTTP, or switches the protocol, ends the call', async (t) => {
  for (const head of ['SSH-2.0-OpenSSH_9\r\n', 'HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n']) {
    const server = createServer((socket) => socket.once('data', () => socket.write(head))).listen(0, '127.0.0.1');
    await once(server, 'listening');
    atEnd(t, () => server.close());
    const { port } = server.address() as AddressInfo;
    const provider = createOpenAiProvider({ baseUrl: `http://127.0.0.1:${port}/v1`, model: 'm' });
    const run = await runModel(provider, callOf('x'), { timeoutMs });
    assert.deepEqual([failureOf(run).kind, failureOf(run).code], ['unknown', 'upstream_failed'], head);
  }
});
