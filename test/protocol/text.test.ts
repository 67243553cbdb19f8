import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codePoints, hasForbiddenText, toStorableText } from '../../src/protocol/text.ts';

test('a text is as long as its code points, a lone surrogate counts one', () => {
  const cases: [string, number][] = [
    ['', 0],
    ['abc', 3],
    ['é', 1],
    ['e\u0301', 2],
    ['漢字', 2],
    ['😀', 1],
    ['a😀b😀', 4],
    ['\ud83d', 1],
    ['\ude00', 1],
    ['\ude00\ud83d', 2],
    ['\ud83d😀', 2],
    ['\ud83d\ud83d\ude00\ude00', 3],
    ['👩‍👩‍👧', 5],
  ];
  for (const [text, length] of cases) {
    assert.equal(codePoints(text), length, JSON.stringify(text));
    assert.equal(codePoints(text), [...text].length, JSON.stringify(text));
  }
});

test('U+0000 and lone surrogates are forbidden in a text, and named', () => {
  const cases: [string, ReturnType<typeof hasForbiddenText>][] = [
    ['', undefined],
    ['plain 😀 \u0001 \uffff', undefined],
    ['a\u0000b', 'nul'],
    ['\ud83d', 'lone_surrogate'],
    ['\ude00\ud83d', 'lone_surrogate'],
    ['x\udfff', 'lone_surrogate'],
    ['\u0000\ud83d', 'nul'],
  ];
  for (const [text, fault] of cases) assert.equal(hasForbiddenText(text), fault, JSON.stringify(text));
});

test('a text is made storable by replacing only what is forbidden', () => {
  const cases: [string, string][] = [
    ['', ''],
    ['plain 😀', 'plain 😀'],
    ['a\u0000b\u0000', 'a\ufffdb\ufffd'],
    ['x\ud83dy', 'x\ufffdy'],
    ['\ude00\ud83d', '\ufffd\ufffd'],
    ['\ud83d😀', '\ufffd😀'],
  ];
  for (const [text, storable] of cases) {
    assert.equal(toStorableText(text), storable, JSON.stringify(text));
    assert.equal(hasForbiddenText(storable), undefined);
    assert.equal(codePoints(storable), codePoints(text));
  }
});
