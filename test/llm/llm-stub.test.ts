import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { type LlmStub, type StubOptions, startLlmStub } from '../../scripts/llm-stub/server.ts';
import type { StubStats } from '../../scripts/llm-stub/stats.ts';
import { atEnd } from '../helpers/cleanup.ts';

async function stubFor(t: TestContext, options: StubOptions = {}): Promise<LlmStub> {
  const stub = await startLlmStub({ latencyMs: 20, tokens: 8, ...options });
  atEnd(t, stub.close);
  return stub;
}

function ask(
  stub: LlmStub,
  content: string,
  key?: string,
  headers: { [name: string]: string } = {},
): Promise<Response> {
  return fetch(`${stub.url}/chat/completions`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(key === undefined ? {} : { 'idempotency-key': key }),
      ...headers,
    },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] }),
  });
}

test('the stub counts calls and tokens, in all and by key', async (t) => {
  const stub = await stubFor(t);
  await (await ask(stub, 'abcd', 'k-1')).text();
  await (await ask(stub, 'abcd', 'k-1')).text();
  await (await ask(stub, 'abcd', '__proto__')).text();
  await (await ask(stub, '[[fail:500]]')).text();
  await assert.rejects(ask(stub, '[[cut]]').then((response) => response.text()));
  await stub.until(({ active }) => active === 0);
  const stats = await statsOf(stub.url);
  assert.deepEqual(stats, JSON.parse(JSON.stringify(stub.stats())));
  const { calls, prompt_tokens, completion_tokens, outcomes } = stats;
  assert.deepEqual([calls, prompt_tokens, completion_tokens], [5, 3, 24]);
  assert.deepEqual(outcomes, { answered: 3, replayed: 0, failed: 1, cut: 1, client_closed: 0 });
  assert.deepEqual(Object.entries(stub.stats().by_key), [
    ['k-1', { calls: 2, prompt_tokens: 2, completion_tokens: 16 }],
    ['__proto__', { calls: 1, prompt_tokens: 1, completion_tokens: 8 }],
  ]);
});

test('a reset of the stub begins from zero', async (t) => {
  const stub = await stubFor(t);
  await (await ask(stub, 'x', 'k')).text();
  stub.script(['fail:500']);
  const answer = await fetch(`${new URL(stub.url).origin}/reset`, { method: 'POST' });
  assert.equal(((await answer.json()) as StubStats).calls, 0);
  assert.deepEqual(stub.stats().by_key, {});
  assert.equal((await ask(stub, 'x')).status, 200, 'the script is gone, too');
});

test('a script decides over the next calls, whatever their prompts say', async (t) => {
  const stub = await stubFor(t);
  const set = (body: string) => fetch(`${stub.url}/script`, { method: 'POST', body });
  assert.equal((await set('["fail:429:1", "[[cut]]", "ok"]')).status, 200);
  const limited = await ask(stub, 'x');
  assert.deepEqual([limited.status, limited.headers.get('retry-after')], [429, '1']);
  await assert.rejects(ask(stub, 'x'));
  assert.equal((await ask(stub, '[[fail:500]]')).status, 200);
  assert.equal((await ask(stub, '[[fail:500]]')).status, 500);
  for (const wrong of ['', '{}', '["nope"]', '[7]', '"ok"']) assert.equal((await set(wrong)).status, 400, wrong);
});

test('a stub that honours keys pays a repeated call once', async (t) => {
  const stub = await stubFor(t, { dedupe: true });
  const first = (await (await ask(stub, 'x', 'k')).json()) as Answer;
  const second = (await (await ask(stub, 'x', 'k')).json()) as Answer;
  assert.deepEqual(second.choices, first.choices);
  const { calls, completion_tokens, outcomes } = stub.stats();
  assert.deepEqual([calls, completion_tokens, outcomes.answered, outcomes.replayed], [2, 8, 1, 1]);
  assert.equal((await ask(stub, 'something else', 'k')).status, 400);
});

test('a stub that honours keys answers 409 while the first call runs, and forgets a failed one', async (t) => {
  const stub = await stubFor(t, { dedupe: true });
  const stop = new AbortController();
  const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: '[[stall times=1]]' }] });
  const first = fetch(`${stub.url}/chat/completions`, {
    method: 'POST',
    headers: { 'idempotency-key': 'k' },
    body,
    signal: stop.signal,
  });
  await stub.until(({ active }) => active === 1);
  const twin = await ask(stub, '[[stall times=1]]', 'k');
  assert.deepEqual([twin.status, twin.headers.get('retry-after')], [409, '1']);
  stop.abort();
  await assert.rejects(first);
  await stub.until(({ active }) => active === 0);
  assert.equal(stub.stats().outcomes.client_closed, 1);
  assert.equal((await ask(stub, '[[stall times=1]]', 'k')).status, 200);
});

test('a stub with a fail rate draws the same failures from the same seed', async (t) => {
  const outcomes = async (seed: number) => {
    const stub = await stubFor(t, { failRate: 0.5, latencyMs: 0, seed });
    // Ends those that stall; all others are long done.
    const signal = AbortSignal.timeout(3_000);
    const calls: Promise<unknown>[] = [];
    for (let i = 1; i <= 20; i++) {
      const call = fetch(`${stub.url}/chat/completions`, { method: 'POST', body: BODY, signal });
      calls.push(call.then((response) => response.text()).catch(() => 'failed, as drawn'));
      await stub.until((stats) => stats.calls === i);
    }
    await Promise.all(calls);
    const { recent } = await stub.until(({ active }) => active === 0);
    return recent.map(({ outcome }) => outcome).join();
  };
  const [first, again, other] = await Promise.all([outcomes(1), outcomes(1), outcomes(2)]);
  assert.equal(again, first);
  assert.notEqual(other, first);
  assert.match(first, /answered/);
  assert.match(first, /failed|cut|client_closed/);
});

test('the stub refuses what no provider would take', async (t) => {
  const stub = await stubFor(t, { apiKey: 'right' });
  assert.equal((await ask(stub, 'x')).status, 401);
  assert.equal((await ask(stub, 'x', 'k', { authorization: 'Bearer right' })).status, 200);
  const post = (body: string) =>
    fetch(`${stub.url}/chat/completions`, { method: 'POST', headers: { authorization: 'Bearer right' }, body });
  for (const body of ['', '{}', '[]', '{"model":"m"}', '{"model":"m","messages":[]}', '{"model":7,"messages":[{}]}']) {
    assert.equal((await post(body)).status, 400, body);
  }
  assert.equal((await post('{"model":"m","messages":[{}],"max_tokens":0}')).status, 400);
  assert.equal((await fetch(`${stub.url}/embeddings`)).status, 404);
  assert.equal(stub.stats().calls, 1, 'what is refused at the door is no call');
});

test('npm run llm-stub says where it listens, answers, and leaves at once on a signal', async (t) => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    const { child, lines } = command(t, ['--port', '0', '--latency', '10', '--do', 'tokens:3']);
    const first = (await lines.next()).value as string;
    const url = /^The stub listens: LLM_BASE_URL=(http:\S+\/v1)$/.exec(first)?.[1];
    assert.ok(url, first);
    const answer = await fetch(`${url}/chat/completions`, { method: 'POST', body: BODY });
    assert.equal(((await answer.json()) as Answer).usage.completion_tokens, 3);
    assert.equal((await lines.next()).value, 'call 1, key none: answered');
    // A call that hangs must not keep it.
    const hanging = fetch(`${url}/chat/completions`, { method: 'POST', body: BODY.replace('x', '[[stall]]') });
    await Promise.all([assert.rejects(hanging), untilActive(url).then(() => child.kill(signal))]);
    const [code] = await once(child, 'exit');
    assert.equal(code, 0);
  }
});

test('npm run llm-stub explains a wrong option in a sentence and ends with 2', async (t) => {
  const wrong = [
    [['--port', 'x'], /--port takes a whole number from 0 to 65535, not "x"\./],
    [['--fail-rate', '2'], /--fail-rate takes a number from 0 to 1/],
    [['--do', 'nope'], /Not a directive: nope/],
    [['--wat'], /Unknown option '--wat'/],
  ] as const;
  await Promise.all(
    wrong.map(async ([args, said]) => {
      const { child, errors } = command(t, [...args]);
      const [code] = await once(child, 'close');
      assert.equal(code, 2);
      assert.match(errors(), said);
      assert.doesNotMatch(errors(), /\n\s+at /, 'no stack');
    }),
  );
});

test('npm run llm-stub on a port that is taken ends with 1 and says so', async (t) => {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  atEnd(t, () => holder.close());
  const { child, errors } = command(t, ['--port', String((holder.address() as AddressInfo).port)]);
  const [code] = await once(child, 'close');
  assert.equal(code, 1);
  assert.match(errors(), /cannot listen on 127\.0\.0\.1:\d+: the port is taken\./);
});

type Answer = { readonly choices: unknown; readonly usage: { readonly completion_tokens: number } };

const BODY = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x' }] });

function command(t: TestContext, args: readonly string[]) {
  const child = spawn(process.execPath, ['--import', 'tsx', 'scripts/llm-stub.ts', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  atEnd(t, () => child.kill('SIGKILL'));
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (part) => {
    said += part;
  });
  return { child, lines: createInterface(child.stdout)[Symbol.asyncIterator](), errors: () => said };
}

async function statsOf(url: string): Promise<StubStats> {
  const answer = await fetch(`${new URL(url).origin}/stats`);
  return (await answer.json()) as StubStats;
}

async function untilActive(url: string): Promise<void> {
  while ((await statsOf(url)).active === 0);
}
