import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as v from 'valibot';
import { parseJson, parseJsonText } from '../../src/protocol/json.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

function refusal(text: string): string {
  const result = parseJson(bytes(text));
  return result.kind === 'invalid' ? result.reason : assert.fail(`read as ${JSON.stringify(result.value)}`);
}

test('JSON of every kind is read as JSON.parse reads it', () => {
  for (const text of [
    'null',
    'true',
    'false',
    '0',
    '-0',
    '-1.5e-3',
    '1E5',
    '""',
    '"a"',
    '[]',
    '{}',
    ' \t\r\n[ 1 , 2 ]\n',
    '{"a":{"b":[1,"x",null]},"c":":{}[],\\"\\\\"}',
    '"\\u00e9\\ud83d\\ude00\\/\\b\\f\\n\\r\\t"',
    '"\\ud83d"',
    '"\\u0000"',
    '"é漢😀\u007f\u2028"',
    '{"":1,"a":2,"A":3}',
    '[{"a":1},{"a":1}]',
    '{"a":{"a":{"a":1}}}',
    '"\\\\"',
    '["\\\\\\"",":"]',
  ]) {
    assert.deepEqual(parseJson(bytes(text)), { kind: 'value', value: JSON.parse(text) }, text);
    assert.deepEqual(parseJsonText(text), { kind: 'value', value: JSON.parse(text) }, text);
  }
});

test('what RFC 8259 refuses is refused, with the place of the first fault', () => {
  const cases: [text: string, reason: string][] = [
    [' ', 'Expected a value, found the end of the body, at character 1.'],
    ['{"a":1', 'Expected a comma or }, found the end of the body, at character 6.'],
    ['{"a":1,}', 'Expected a member name in quotes, found something else, at character 7.'],
    ['{a:1}', 'Expected a member name in quotes, found something else, at character 1.'],
    ["{'a':1}", 'Expected a member name in quotes, found something else, at character 1.'],
    ['{"a" 1}', 'Expected a colon, found something else, at character 5.'],
    ['{"a"::1}', 'Expected a value, found something else, at character 5.'],
    ['{"a":}', 'Expected a value, found something else, at character 5.'],
    ['[1,]', 'Expected a value, found something else, at character 3.'],
    ['[1 2]', 'Expected a comma or ], found something else, at character 3.'],
    ['[1}', 'Expected a comma or ], found something else, at character 2.'],
    ['[', 'Expected a value, found the end of the body, at character 1.'],
    [']', 'Expected a value, found something else, at character 0.'],
    ['1 2', 'Expected the end, found something else, at character 2.'],
    ['{}x', 'Expected the end, found something else, at character 2.'],
    ['01', 'Expected the end, found something else, at character 1.'],
    ['-', 'Expected a number, found something else, at character 0.'],
    ['+1', 'Expected a value, found something else, at character 0.'],
    ['.5', 'Expected a value, found something else, at character 0.'],
    ['1.', 'Expected the end, found something else, at character 1.'],
    ['1e', 'Expected the end, found something else, at character 1.'],
    ['0x10', 'Expected the end, found something else, at character 1.'],
    ['NaN', 'Expected a value, found something else, at character 0.'],
    ['-Infinity', 'Expected a number, found something else, at character 0.'],
    ['undefined', 'Expected a value, found something else, at character 0.'],
    ['tru', 'Expected a value, found something else, at character 0.'],
    ['True', 'Expected a value, found something else, at character 0.'],
    ['"a', 'Expected a closing quote, found the end of the body, at character 2.'],
    ['"a\\"', 'Expected a closing quote, found the end of the body, at character 4.'],
    ['"\\x"', 'Not an escape of JSON, at character 1.'],
    ['"\\u12g4"', 'Not an escape of JSON, at character 1.'],
    ['"a\nb"', 'A control character in a string must be escaped, at character 2.'],
    ['"\u0000"', 'A control character in a string must be escaped, at character 1.'],
    ['[1] // why', 'Expected the end, found something else, at character 4.'],
    ['\u00a0[]', 'Expected a value, found something else, at character 0.'],
  ];
  for (const [text, reason] of cases) assert.equal(refusal(text), reason, text);
});

test('an empty body, a byte order mark and bytes that are no UTF-8 are refused', () => {
  assert.equal(refusal(''), 'The body is empty; send a JSON value.');
  assert.equal(refusal('\ufeff{}'), 'The body begins with a byte order mark; send UTF-8 without one.');
  const invalidUtf8 = [
    ['a lone continuation byte', [0x22, 0x80, 0x22]],
    ['an overlong slash', [0x22, 0xc0, 0xaf, 0x22]],
    ['a surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ['beyond U+10FFFF', [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22]],
    ['a cut character', [0x22, 0xe6, 0xbc]],
    ['latin1', [0x22, 0xe9, 0x22]],
    ['UTF-16', [0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]],
  ] as const;
  for (const [title, raw] of invalidUtf8) {
    const result = parseJson(Uint8Array.from(raw));
    assert.deepEqual(result, { kind: 'invalid', reason: 'The body is not valid UTF-8.' }, title);
  }
});

test('a member that is there twice in one object is refused, compared after unescaping', () => {
  const cases: [text: string, reason: string][] = [
    ['{"a":1,"a":1}', 'The member "a" is there twice, at character 7.'],
    ['{"a":1,"\\u0061":2}', 'The member "a" is there twice, at character 7.'],
    ['[{"x":{"b":1,"c":2,"b":{}}}]', 'The member "b" is there twice, at character 19.'],
    ['{"a":{"a":1},"a":2}', 'The member "a" is there twice, at character 13.'],
    ['{"__proto__":1,"__proto__":2}', 'The member "__proto__" is there twice, at character 15.'],
    ['{"":1,"":2}', 'The member "" is there twice, at character 6.'],
    [
      `{"${'n'.repeat(99)}":1,"${'n'.repeat(99)}":2}`,
      `The member "${'n'.repeat(40)}" is there twice, at character 105.`,
    ],
  ];
  for (const [text, reason] of cases) assert.equal(refusal(text), reason, text);
  assert.equal(parseJsonText('{"é":1,"e\u0301":2}').kind, 'value');
});

test('a number beyond ±(2^53 − 1) is refused wherever it stands and however it is written', () => {
  const reason = /^A number is beyond ±\(2\^53 − 1\).*, at character [0-9]+\.$/;
  for (const text of [
    '9007199254740992',
    '9007199254740993',
    '-9007199254740992',
    '9007199254740992.0',
    '9.007199254740993e15',
    '1e16',
    '1e400',
    '-1e400',
    '123456789012345678901234567890',
    '{"a":[1,{"b":1e21}]}',
  ]) {
    assert.match(refusal(text), reason, text);
  }
  for (const text of [
    '9007199254740991',
    '-9007199254740991',
    '9007199254740991.0',
    '1e15',
    '0.1',
    '1e-400',
    '5e-324',
  ]) {
    assert.deepEqual(parseJsonText(text), { kind: 'value', value: Number(text) }, text);
  }
});

test('nesting of 64 is read, of 65 refused, and brackets in strings do not nest', () => {
  for (const [open, close] of [
    ['[', ']'],
    ['{"a":', '}'],
  ] as const) {
    const nested = (depth: number) => `${open.repeat(depth)}1${close.repeat(depth)}`;
    assert.equal(parseJsonText(nested(64)).kind, 'value');
    assert.match(refusal(nested(65)), /^Nesting is deeper than 64, at character [0-9]+\.$/);
  }
  assert.equal(parseJsonText(`"${'['.repeat(1_000)}"`).kind, 'value');
  assert.equal(parseJsonText(`[${'[],'.repeat(1_000)}[]]`).kind, 'value');
});

test('100,000 brackets are refused without a stack overflow', () => {
  for (const text of ['['.repeat(100_000), '{"a":'.repeat(100_000), '['.repeat(100_000) + ']'.repeat(100_000)]) {
    assert.match(refusal(text), /^Nesting is deeper than 64/);
  }
  assert.match(refusal(']'.repeat(100_000)), /at character 0/);
});

test('members named like parts of the prototype are ordinary members, and a strict schema refuses them', () => {
  for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
    const result = parseJsonText(`{"${name}":{"cents":1},"item":"x"}`);
    assert.ok(result.kind === 'value');
    assert.deepEqual(Object.keys(result.value as object), [name, 'item']);
    assert.equal(Object.getPrototypeOf(result.value), Object.prototype);
    assert.equal(v.safeParse(v.strictObject({ item: v.string() }), result.value).success, false, name);
  }
});
