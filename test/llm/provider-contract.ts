import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { planAnswer } from '../../src/llm/plan.ts';
import type { ModelCall, Piece, Provider, Usage } from '../../src/llm/provider.ts';
import { type ModelRun, runModel } from '../../src/llm/run.ts';
import { estimatePromptTokens } from '../../src/llm/tokens.ts';

/** What both providers under test are set to: quick, and with more than one piece. */
export const LATENCY_MS = 60;
/** Tokens of an ordinary answer. */
export const TOKENS = 12;

/** A provider to be tried, and what the other side of it knows. */
export type Subject = {
  readonly provider: Provider;
  /** Calls that the model has seen. */
  calls(): number;
  /** Resolves when the model has no call any more: its side of every socket is closed. */
  idle(): Promise<void>;
};

/** A call with nothing special about it. */
export function callOf(prompt: string, more: Partial<ModelCall> = {}): ModelCall {
  return { prompt, maxTokens: 512, signal: new AbortController().signal, idempotencyKey: 'rs-contract', ...more };
}

/** What the model's plan for a call is: both providers follow the same. */
export function expectedText(call: ModelCall): string {
  return planAnswer({
    prompt: call.prompt,
    maxTokens: call.maxTokens,
    seed: call.idempotencyKey,
    attempt: 1,
    latencyMs: LATENCY_MS,
    tokenCount: TOKENS,
  }).tokens.join('');
}

type Expected = { kind: string; code: string; status?: number; retryAfterMs?: number };
type Failure = { prompt: string; expected: Expected; sent?: boolean; completionTokens?: number };

const FAILURES: readonly Failure[] = [
  { prompt: '[[fail:400]]', expected: { kind: 'final', code: 'upstream_failed', status: 400 } },
  { prompt: '[[fail:401]]', expected: { kind: 'final', code: 'upstream_failed', status: 401 } },
  { prompt: '[[fail:404]]', expected: { kind: 'final', code: 'upstream_failed', status: 404 } },
  { prompt: '[[fail:408]]', expected: { kind: 'retryable', code: 'upstream_timeout', status: 408 } },
  { prompt: '[[fail:409]]', expected: { kind: 'final', code: 'upstream_failed', status: 409 } },
  {
    prompt: '[[fail:409:1]]',
    expected: { kind: 'retryable', code: 'upstream_busy', status: 409, retryAfterMs: 1_000 },
  },
  { prompt: '[[fail:429]]', expected: { kind: 'retryable', code: 'upstream_busy', status: 429 } },
  {
    prompt: '[[fail:429:2]]',
    expected: { kind: 'retryable', code: 'upstream_busy', status: 429, retryAfterMs: 2_000 },
  },
  {
    prompt: '[[fail:429:900]]',
    expected: { kind: 'retryable', code: 'upstream_busy', status: 429, retryAfterMs: 60_000 },
  },
  { prompt: '[[fail:500]]', expected: { kind: 'retryable', code: 'upstream_failed', status: 500 } },
  { prompt: '[[fail:502]]', expected: { kind: 'retryable', code: 'upstream_failed', status: 502 } },
  {
    prompt: '[[fail:503:7]]',
    expected: { kind: 'retryable', code: 'upstream_busy', status: 503, retryAfterMs: 7_000 },
  },
  { prompt: '[[fail:504]]', expected: { kind: 'unknown', code: 'upstream_timeout', status: 504 } },
  { prompt: '[[fail:529]]', expected: { kind: 'retryable', code: 'upstream_busy', status: 529 } },
  { prompt: '[[cut]]', expected: { kind: 'unknown', code: 'upstream_failed' } },
  { prompt: '[[cut:3]]', expected: { kind: 'unknown', code: 'upstream_failed' }, completionTokens: 3 },
  { prompt: '[[error]]', expected: { kind: 'retryable', code: 'upstream_failed' } },
  { prompt: '[[error:3]]', expected: { kind: 'retryable', code: 'upstream_failed' }, completionTokens: 3 },
];

/** The promises of the seam, tried with one provider. `open` makes a fresh one for each test. */
export function testProvider(name: string, open: (t: TestContext) => Promise<Subject>): void {
  const it = (title: string, body: (subject: Subject, t: TestContext) => Promise<void>) =>
    test(`${name}: ${title}`, async (t) => {
      const subject = await open(t);
      await body(subject, t);
      await subject.idle();
    });

  it('texts come in order, then one end with the usage', async ({ provider }) => {
    const call = callOf('Say something. [[slow:500]]');
    const pieces = await collect(provider.generate(call));
    const end = pieces.pop();
    const usage: Usage = { promptTokens: estimatePromptTokens(call.prompt), completionTokens: TOKENS };
    assert.deepEqual(end, { kind: 'end', finish: 'stop', usage });
    assert.ok(pieces.every((piece) => piece.kind === 'text'));
    assert.ok(pieces.filter((piece) => piece.kind === 'text' && piece.text !== '').length > 1, 'it comes in pieces');
    assert.equal(textOf(pieces), expectedText(call));
  });

  it('the same call gives the same words, another key gives others', async ({ provider }) => {
    const first = await run(provider, callOf('Same.'));
    assert.equal((await run(provider, callOf('Same.'))).text, first.text);
    assert.notEqual((await run(provider, callOf('Same.', { idempotencyKey: 'rs-other' }))).text, first.text);
  });

  it('at temperature 0 the words depend on the prompt alone', async ({ provider }) => {
    const first = await run(provider, callOf('Cold.', { temperature: 0 }));
    const second = await run(provider, callOf('Cold.', { temperature: 0, idempotencyKey: 'rs-other' }));
    assert.equal(second.text, first.text);
  });

  it('an answer that reaches max tokens ends with length, and counts', async ({ provider }) => {
    const result = await run(provider, callOf('Be brief.', { maxTokens: 5 }));
    assert.equal(result.kind, 'answered');
    assert.equal(result.kind === 'answered' && result.finish, 'length');
    assert.equal(result.usage.completionTokens, 5);
  });

  it('pieces are counted when the provider does not say how many tokens it took', async ({ provider }) => {
    const call = callOf('Quietly. [[no-usage]]');
    const result = await run(provider, call);
    assert.deepEqual(result.usage, {
      promptTokens: estimatePromptTokens(call.prompt),
      completionTokens: TOKENS,
      estimated: true,
    });
  });

  for (const text of ['nul', 'surrogate', 'emoji', 'crlf', 'html', 'long:200000']) {
    it(`awkward text (${text}) arrives unchanged`, async ({ provider }) => {
      const call = callOf(`[[text:${text}]]`);
      const result = await run(provider, call);
      assert.equal(result.kind, 'answered');
      assert.equal(result.text, expectedText(call));
      assert.match(result.text, MARKS[text]!);
    });
  }

  it('an echo is the prompt without its directives', async ({ provider }) => {
    const result = await run(provider, callOf('a  "b"\n\u00e9 \u{1f389} [[echo]]'));
    assert.equal(result.text, 'a  "b"\n\u00e9 \u{1f389}');
  });

  for (const { prompt, expected, completionTokens = 0 } of FAILURES) {
    it(`${prompt} is ${expected.kind} ${expected.code}`, async ({ provider }) => {
      const result = await run(provider, callOf(prompt));
      assert.ok(result.kind === 'failed');
      const { kind, code, status, retryAfterMs } = result.error;
      const { status: wantedStatus, retryAfterMs: wantedWait, ...wanted } = expected;
      assert.deepEqual(
        { kind, code, status, retryAfterMs },
        { ...wanted, status: wantedStatus, retryAfterMs: wantedWait },
      );
      assert.equal(result.sent, true);
      // What was received before the failure is neither lost nor forgotten in the bill.
      const promptTokens = completionTokens === 0 ? 0 : estimatePromptTokens(prompt);
      assert.deepEqual(result.usage, { promptTokens, completionTokens, estimated: true });
      assert.equal(result.text === '', completionTokens === 0);
    });
  }

  it('a bounded fault meets the first calls with one key only', async ({ provider }) => {
    const kinds: string[] = [];
    for (let i = 0; i < 3; i++) kinds.push((await run(provider, callOf('[[fail:500 times=2]]'))).kind);
    assert.deepEqual(kinds, ['failed', 'failed', 'answered']);
    assert.equal((await run(provider, callOf('[[fail:500 times=2]]', { idempotencyKey: 'rs-other' }))).kind, 'failed');
  });

  it('silence from the start ends the call as unknown, and counts as sent', async ({ provider }) => {
    const result = await run(provider, callOf('[[stall]]'), 300);
    assert.ok(result.kind === 'failed');
    assert.match(result.error.message, /silent for 100 ms/);
    assert.deepEqual([result.error.kind, result.error.code, result.sent], ['unknown', 'upstream_timeout', true]);
  });

  it('silence in the middle ends the call and keeps what came before', async ({ provider }) => {
    const result = await run(provider, callOf('[[stall-after:3]]'), 600);
    assert.ok(result.kind === 'failed');
    assert.match(result.error.message, /silent for 200 ms/);
    assert.deepEqual([result.error.kind, result.error.code], ['unknown', 'upstream_timeout']);
    assert.equal(result.usage.completionTokens, 3);
  });

  it('an answer that never pauses but takes too long is ended, too', async ({ provider }) => {
    const result = await run(provider, callOf('[[slow:5000]] [[tokens:200]]'), 450);
    assert.ok(result.kind === 'failed');
    assert.match(result.error.message, /did not finish within 450 ms/);
    assert.deepEqual([result.error.kind, result.error.code], ['unknown', 'upstream_timeout']);
    assert.ok(result.usage.completionTokens > 3);
  });

  it('an abort in the middle throws its reason at once and frees the socket', async ({ provider, idle, calls }) => {
    const stop = new AbortController();
    const reason = new Error('enough');
    const pieces: Piece[] = [];
    await assert.rejects(
      async () => {
        for await (const piece of provider.generate(callOf('[[stall-after:3]]', { signal: stop.signal }))) {
          pieces.push(piece);
          if (textOf(pieces).split(' ').length === 3) stop.abort(reason);
        }
      },
      (error) => error === reason,
    );
    await idle();
    assert.equal(calls(), 1);
  });

  it('an abort holds even when the end would follow at once', async ({ provider }) => {
    const stop = new AbortController();
    const pieces = provider.generate(callOf('[[tokens:1]]', { signal: stop.signal }));
    await assert.rejects(
      async () => {
        for await (const piece of pieces)
          if (piece.kind === 'text' && piece.text !== '') stop.abort(new Error('enough'));
      },
      { message: 'enough' },
    );
  });

  it('an abort before the first byte frees the socket', async ({ provider, idle }) => {
    const stop = new AbortController();
    const result = run(
      provider,
      callOf('[[stall]]', { signal: stop.signal, onSent: () => setImmediate(() => stop.abort('off')) }),
    );
    assert.deepEqual(await result.then(({ kind, sent, text }) => ({ kind, sent, text })), {
      kind: 'aborted',
      sent: true,
      text: '',
    });
    await idle();
  });

  it('a call whose signal has fired already is never sent', async ({ provider, calls }) => {
    const signal = AbortSignal.abort(new Error('too late'));
    await assert.rejects(collect(provider.generate(callOf('x', { signal }))), /too late/);
    assert.equal(calls(), 0);
  });

  it('leaving the loop early frees the socket', async ({ provider, idle }) => {
    for await (const piece of provider.generate(callOf('[[stall-after:3]]'))) if (piece.kind === 'text') break;
    await idle();
  });

  it('forty calls at once do not wait for one another', async ({ provider, calls }) => {
    const startedMs = performance.now();
    const results = await Promise.all(
      Array.from({ length: 40 }, (_, i) => run(provider, callOf('[[slow:300]]', { idempotencyKey: `rs-${i}` }))),
    );
    assert.ok(results.every(({ kind }) => kind === 'answered'));
    assert.equal(new Set(results.map(({ text }) => text)).size, 40);
    assert.equal(calls(), 40);
    // One after another they would take 12 s.
    assert.ok(performance.now() - startedMs < 6_000);
  });
}

const MARKS: { readonly [text: string]: RegExp } = {
  nul: /\u0000/,
  surrogate: /\ud800(?![\udc00-\udfff])/,
  emoji: /👩‍👩‍👧 🎉/u,
  crlf: /\r\n\r\ndata: x/,
  html: /<script>/,
  'long:200000': /^[\s\S]{200000}$/,
};

function run(provider: Provider, call: ModelCall, timeoutMs = 10_000): Promise<ModelRun> {
  return runModel(provider, call, { timeoutMs });
}

async function collect(pieces: AsyncIterable<Piece>): Promise<Piece[]> {
  const all: Piece[] = [];
  for await (const piece of pieces) all.push(piece);
  return all;
}

function textOf(pieces: readonly Piece[]): string {
  return pieces.map((piece) => (piece.kind === 'text' ? piece.text : '')).join('');
}
