import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAttempts } from '../../src/llm/attempts.ts';
import { deriveCallKey } from '../../src/llm/call-key.ts';
import { parseDirectives } from '../../src/llm/directives.ts';
import { planAnswer } from '../../src/llm/plan.ts';
import { estimatePromptTokens } from '../../src/llm/tokens.ts';

const none = { faultTimes: Number.POSITIVE_INFINITY, echo: false, tellsUsage: true, rest: '' };

test('each directive says one thing', () => {
  const cases: [string, object][] = [
    ['[[fail:500]]', { fault: { kind: 'status', status: 500 } }],
    ['[[fail:429:2]]', { fault: { kind: 'status', status: 429, retryAfterSeconds: 2 } }],
    ['[[fail:500 times=2]]', { fault: { kind: 'status', status: 500 }, faultTimes: 2 }],
    ['[[refused]]', { fault: { kind: 'refused' } }],
    ['[[stall]]', { fault: { kind: 'stall', after: 0 } }],
    ['[[stall-after:10]]', { fault: { kind: 'stall', after: 10 } }],
    ['[[cut]]', { fault: { kind: 'cut', after: 0 } }],
    ['[[cut:10 times=1]]', { fault: { kind: 'cut', after: 10 }, faultTimes: 1 }],
    ['[[error:3]]', { fault: { kind: 'error', after: 3 } }],
    ['[[ok]]', { faultTimes: 0 }],
    ['[[slow:5000]]', { latencyMs: 5_000 }],
    ['[[first:800]]', { firstMs: 800 }],
    ['[[tokens:200]]', { tokens: 200 }],
    ['[[text:nul]]', { text: 'nul' }],
    ['[[text:long:300]]', { length: 300 }],
    ['[[text:long]]', { length: 200_000 }],
    ['[[echo]]', { echo: true }],
    ['[[no-usage]]', { tellsUsage: false }],
  ];
  for (const [prompt, expected] of cases) assert.deepEqual(parseDirectives(prompt), { ...none, ...expected }, prompt);
});

test('what is no directive stays in the prompt', () => {
  const texts = [
    '[[fail]]',
    '[[fail:200]]',
    '[[fail:abc]]',
    '[[link]]',
    '[[text:odd]]',
    '[cut]',
    '[[slow]]',
    '[[ ok ]]',
    '[[ok',
  ];
  for (const text of texts) assert.deepEqual(parseDirectives(`a ${text}`), { ...none, rest: `a ${text}` });
});

test('of two directives that contradict each other the later one holds', () => {
  assert.deepEqual(parseDirectives('[[fail:500 times=1]] a [[cut:2]]').fault, { kind: 'cut', after: 2 });
  assert.equal(parseDirectives('[[fail:500 times=1]] a [[cut:2]]').faultTimes, Number.POSITIVE_INFINITY);
  assert.equal(parseDirectives('[[cut:2]] [[ok]]').faultTimes, 0);
});

test('directives cannot ask for more than a machine can give', () => {
  const asked = parseDirectives('[[tokens:9999999999]] [[slow:9999999999]] [[text:long:9999999999]]');
  assert.deepEqual([asked.tokens, asked.latencyMs, asked.length], [100_000, 3_600_000, 4_000_000]);
});

test('directives are found in linear time in whatever the prompt is', () => {
  for (const piece of ['[', '[[', '[[fail:', '[[fail:500 times=', '[[a:b:c', ']]']) {
    const startedMs = performance.now();
    parseDirectives(piece.repeat(300_000));
    assert.ok(performance.now() - startedMs < 2_000, piece);
  }
});

test('a plan never has more tokens than asked for, and at least those it has are the same', () => {
  const input = { prompt: 'p', seed: 's', attempt: 1, latencyMs: 1, tokenCount: 20 };
  const whole = planAnswer({ ...input, maxTokens: 100 });
  const short = planAnswer({ ...input, maxTokens: 7 });
  assert.deepEqual([whole.finish, whole.tokens.length], ['stop', 20]);
  assert.deepEqual([short.finish, short.tokens.length], ['length', 7]);
  assert.deepEqual(short.tokens, whole.tokens.slice(0, 7));
  assert.match(whole.tokens.join(''), /^[A-Z][a-z]*( [a-zA-Z]+\.?)+\.$/);
});

test('awkward text stays within as few tokens as there are', () => {
  for (const text of ['nul', 'surrogate', 'emoji', 'crlf', 'html', 'long:50']) {
    for (const tokenCount of [1, 2, 3]) {
      const plan = planAnswer({
        prompt: `[[text:${text}]]`,
        seed: '',
        attempt: 1,
        latencyMs: 0,
        tokenCount,
        maxTokens: 9,
      });
      assert.equal(plan.tokens.length, tokenCount, `${text} ${tokenCount}`);
    }
  }
});

test('the key of a provider call is the same for the same step and different for every other', () => {
  const of = { tenant: 'acme', key: 'k-1', step: 'rewrite' };
  assert.equal(deriveCallKey(of), deriveCallKey({ ...of }));
  assert.match(deriveCallKey(of), /^rs-[A-Za-z0-9_-]{43}$/);
  const keys = [
    of,
    { ...of, tenant: 'globex' },
    { ...of, key: 'k-2' },
    { ...of, step: 'job' },
    { tenant: 'acm', key: 'ek-1', step: 'rewrite' },
    { tenant: 'acme","k-1', key: '', step: 'rewrite' },
  ].map(deriveCallKey);
  assert.equal(new Set(keys).size, keys.length);
});

test('a prompt is estimated by its bytes', () => {
  assert.deepEqual(['', 'a', 'abcd', 'abcde', 'é'.repeat(4), '\ud800'].map(estimatePromptTokens), [0, 1, 1, 2, 2, 1]);
});

test('attempts are counted by key, and the key not seen for longest is forgotten first', () => {
  const attempts = createAttempts(2);
  assert.deepEqual(
    ['a', 'b', 'a', 'c', 'a', 'b'].map((key) => attempts.next(key)),
    [1, 1, 2, 1, 3, 1],
  );
});
