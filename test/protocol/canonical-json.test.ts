import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canonicalize } from '../../src/protocol/canonical-json.ts';
import { parseJsonText } from '../../src/protocol/json.ts';

const canonical = (text: string) => {
  const result = parseJsonText(text);
  return result.kind === 'value' ? canonicalize(result.value) : assert.fail(result.reason);
};

test('the examples of RFC 8785 come out as printed there', () => {
  const example = String.raw`{
    "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
    "literals": [null, true, false]
  }`;
  assert.equal(
    canonicalize(JSON.parse(example)),
    String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
  );
  const order = {
    '\u20ac': 'Euro Sign',
    '\r': 'Carriage Return',
    '\ufb33': 'Hebrew Letter Dalet With Dagesh',
    '1': 'One',
    '\ud83d\ude00': 'Emoji: Grinning Face',
    '\u0080': 'Control',
    '\u00f6': 'Latin Small Letter O With Diaeresis',
  };
  assert.deepEqual(
    Object.values(
      JSON.parse(
        `[${canonicalize(order)
          .slice(1, -1)
          .replace(/"[^"]*":/g, '')}]`,
      ),
    ),
    [
      'Carriage Return',
      'One',
      'Control',
      'Latin Small Letter O With Diaeresis',
      'Euro Sign',
      'Emoji: Grinning Face',
      'Hebrew Letter Dalet With Dagesh',
    ],
  );
});

test('the numbers of RFC 8785, appendix B, come out as printed there', () => {
  const cases: [bits: string, text: string][] = [
    ['0000000000000000', '0'],
    ['8000000000000000', '0'],
    ['0000000000000001', '5e-324'],
    ['8000000000000001', '-5e-324'],
    ['7fefffffffffffff', '1.7976931348623157e+308'],
    ['ffefffffffffffff', '-1.7976931348623157e+308'],
    ['4340000000000000', '9007199254740992'],
    ['c340000000000000', '-9007199254740992'],
    ['4430000000000000', '295147905179352830000'],
    ['44b52d02c7e14af5', '9.999999999999997e+22'],
    ['44b52d02c7e14af6', '1e+23'],
    ['44b52d02c7e14af7', '1.0000000000000001e+23'],
    ['444b1ae4d6e2ef4e', '999999999999999700000'],
    ['444b1ae4d6e2ef4f', '999999999999999900000'],
    ['444b1ae4d6e2ef50', '1e+21'],
    ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
    ['3eb0c6f7a0b5ed8d', '0.000001'],
    ['41b3de4355555553', '333333333.3333332'],
    ['41b3de4355555554', '333333333.33333325'],
    ['41b3de4355555555', '333333333.3333333'],
    ['41b3de4355555556', '333333333.3333334'],
    ['41b3de4355555557', '333333333.33333343'],
    ['becbf647612f3696', '-0.0000033333333333333333'],
    ['43143ff3c1cb0959', '1424953923781206.2'],
  ];
  for (const [bits, text] of cases) {
    const view = new DataView(new ArrayBuffer(8));
    view.setBigUint64(0, BigInt(`0x${bits}`));
    assert.equal(canonicalize(view.getFloat64(0)), text, bits);
  }
});

test('two bodies that say the same have one canonical text', () => {
  const same: [string, string][] = [
    ['{"a":1,"b":2}', ' { "b" : 2 ,\n"a" : 1 }'],
    ['{"\\u0061":1}', '{"a":1}'],
    ['"\\u00e9\\/"', '"é/"'],
    ['[1.0,1e2,-0,0.10]', '[1,100,0,0.1]'],
    ['{"x":{"b":[],"a":{}}}', '{"x":{"a":{},"b":[]}}'],
    ['{"10":1,"9":2}', '{"9":2,"10":1}'],
    ['"\\ud83d\\ude00"', '"😀"'],
  ];
  for (const [one, other] of same) assert.equal(canonical(one), canonical(other), `${one} ${other}`);
});

test('two bodies that say different things have different canonical texts', () => {
  const different: [string, string][] = [
    ['[1,2]', '[2,1]'],
    ['"\u00e9"', '"e\u0301"'],
    ['{"a":1,"A":2}', '{"a":2,"A":1}'],
    ['{"__proto__":1}', '{}'],
    ['{"__proto__":{"a":1}}', '{"__proto__":{"a":2}}'],
    ['{}', 'null'],
    ['{}', '[]'],
    ['{"a":null}', '{}'],
    ['1', '"1"'],
    ['true', '"true"'],
    ['["a","b"]', '["a,b"]'],
    ['[[],[]]', '[[[]]]'],
    ['"\\ud83d"', '"\\ude00"'],
    ['"\\ud83d"', '"\ufffd"'],
    ['"\\u0000"', '""'],
    ['9007199254740991', '9007199254740990'],
  ];
  for (const [one, other] of different) assert.notEqual(canonical(one), canonical(other), `${one} ${other}`);
});

test('member names are sorted by UTF-16 code units, not as integers and not by locale', () => {
  assert.equal(canonical('{"9":1,"10":2,"b":3,"B":4,"é":5,"z":6,"":7}'), '{"":7,"10":2,"9":1,"B":4,"b":3,"z":6,"é":5}');
  assert.equal(canonical('{"\ufb33":1,"😀":2}'), '{"😀":2,"\ufb33":1}');
});

test('a lone surrogate is written as its escape', () => {
  assert.equal(canonical('{"\\uDE00":"x\\ud83d"}'), '{"\\ude00":"x\\ud83d"}');
});

test('what is no JSON value has no canonical text', () => {
  for (const value of [
    undefined,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    1n,
    () => 1,
    Symbol('s'),
    { a: undefined },
    [undefined],
  ]) {
    assert.throws(() => canonicalize(value), TypeError, String(value));
  }
});
