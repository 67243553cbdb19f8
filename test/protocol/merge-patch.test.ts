import assert from 'node:assert/strict';
import { test } from 'node:test';
import { applyMergePatch } from '../../src/protocol/merge-patch.ts';
import { relativeOperationHint } from '../../src/protocol/relative-operation.ts';

test('the test cases of RFC 7396, appendix A, come out as printed there', () => {
  const cases: [target: string, patch: string, result: string][] = [
    ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
    ['{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'],
    ['{"a":"b"}', '{"a":null}', '{}'],
    ['{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'],
    ['{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'],
    ['{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'],
    ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'],
    ['{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'],
    ['["a","b"]', '["c","d"]', '["c","d"]'],
    ['{"a":"b"}', '["c"]', '["c"]'],
    ['{"a":"foo"}', 'null', 'null'],
    ['{"a":"foo"}', '"bar"', '"bar"'],
    ['{"e":null}', '{"a":1}', '{"e":null,"a":1}'],
    ['[1,2]', '{"a":"b","c":null}', '{"a":"b"}'],
    ['{}', '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
  ];
  for (const [target, patch, result] of cases) {
    assert.equal(JSON.stringify(applyMergePatch(JSON.parse(target), JSON.parse(patch))), result, `${target} ${patch}`);
  }
});

test('the example document of RFC 7396 §3 is patched as printed there', () => {
  const target = {
    title: 'Goodbye!',
    author: { givenName: 'John', familyName: 'Doe' },
    tags: ['example', 'sample'],
    content: 'This will be unchanged',
  };
  const before = structuredClone(target);
  const patch = { title: 'Hello!', phoneNumber: '+01-123-456-7890', author: { familyName: null }, tags: ['example'] };
  assert.deepEqual(applyMergePatch(target, patch), {
    title: 'Hello!',
    author: { givenName: 'John' },
    tags: ['example'],
    content: 'This will be unchanged',
    phoneNumber: '+01-123-456-7890',
  });
  assert.deepEqual(target, before, 'the target is left alone');
});

test('a patch of `__proto__` reaches no prototype and is kept as a member', () => {
  const patch = JSON.parse(
    '{"__proto__":{"polluted":true},"a":{"__proto__":{"x":1}},"constructor":{"prototype":{"y":1}}}',
  );
  const result = applyMergePatch({}, patch) as Record<string, unknown>;
  assert.equal(JSON.stringify(result), JSON.stringify(patch));
  assert.equal(Object.getPrototypeOf(result), Object.prototype);
  assert.equal(({} as Record<string, unknown>).polluted, undefined);
  assert.equal(JSON.stringify(applyMergePatch(result, JSON.parse('{"__proto__":null}'))).includes('polluted'), false);
});

test('a patch nested 100,000 deep is applied without a stack overflow', () => {
  let patch: unknown = { end: null };
  for (let i = 0; i < 100_000; i++) patch = { a: patch };
  assert.equal(typeof applyMergePatch({}, patch), 'object');
});

test('a refused patch with relative operations gets a hint that quotes what was meant', () => {
  const cases: [patch: string, hint: RegExp][] = [
    ['{"views":"+1"}', /"\+1" is relative/],
    ['{"views":"-2.5"}', /"-2\.5" is relative/],
    ['{"views":"+= 1"}', /"\+= 1" is relative/],
    ['{"views":"++"}', /"\+\+" is relative/],
    ['{"a":{"views":"*2"}}', /"\*2" is relative/],
    ['{"$inc":{"views":1}}', /"\$inc" is an operator/],
    ['{"views":{"$inc":1}}', /"\$inc" is an operator/],
    ['[{"op":"replace","path":"/a","value":1}]', /JSON Patch/],
  ];
  for (const [patch, hint] of cases) assert.match(relativeOperationHint(JSON.parse(patch)) ?? '', hint, patch);
});

test('a patch of absolute values gets no hint', () => {
  for (const patch of [
    '{"title":"a + 1"}',
    '{"views":1}',
    '{"views":-1}',
    '{"a":null}',
    '[]',
    '[{"a":1}]',
    '["op"]',
    'null',
    '"x"',
    '{"a":[{"$inc":1}]}',
  ]) {
    assert.equal(relativeOperationHint(JSON.parse(patch)), undefined, patch);
  }
});
