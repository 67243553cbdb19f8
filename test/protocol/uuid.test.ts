import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatId, formatUuidV7, parseId } from '../../src/protocol/uuid.ts';

test('a UUIDv7 holds its milliseconds, version and variant as in the example of RFC 9562', () => {
  // Appendix A.6: 017F22E2-79B0-7CC3-98C4-DC0C0C07398F. The bits under version and variant must not matter.
  const rest = [0xc3, 0x18, 0xc4, 0xdc, 0x0c, 0x0c, 0x07, 0x39, 0x8f];
  for (const [first, third] of [
    [0x0c, 0x18],
    [0xfc, 0xd8],
  ] as const) {
    const random = Uint8Array.from([first, rest[0]!, third, ...rest.slice(2)]);
    assert.equal(formatUuidV7(1_645_557_742_000, random), '017f22e279b07cc398c4dc0c0c07398f');
  }
});

test('UUIDv7s sort by their milliseconds from 1970 to the end of their range', () => {
  const low = new Uint8Array(10);
  const high = new Uint8Array(10).fill(255);
  const ids = [0, 1, 255, 256, 1_700_000_000_000, 2 ** 48 - 1].flatMap((ms) => [
    formatUuidV7(ms, low),
    formatUuidV7(ms, high),
  ]);
  assert.deepEqual(ids.toSorted(), ids);
  for (const id of ids) assert.match(id, /^[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$/);
});

test('a UUIDv7 is not made from a time out of range or from too few random bytes', () => {
  for (const ms of [-1, 0.5, Number.NaN, 2 ** 48])
    assert.throws(() => formatUuidV7(ms, new Uint8Array(10)), RangeError);
  for (const length of [0, 9, 11, 16]) assert.throws(() => formatUuidV7(0, new Uint8Array(length)), RangeError);
});

test('an id is its prefix and 32 hex digits, made from a UUID with or without hyphens', () => {
  const hex = '017f22e279b07cc398c4dc0c0c07398f';
  assert.equal(formatId('ord', hex), `ord_${hex}`);
  assert.equal(formatId('ord', '017f22e2-79b0-7cc3-98c4-dc0c0c07398f'), `ord_${hex}`);
  assert.equal(parseId('ord', `ord_${hex}`), hex);
});

test('an id in any other form is no id', () => {
  const hex = '017f22e279b07cc398c4dc0c0c07398f';
  for (const text of [
    '',
    'ord_',
    hex,
    `job_${hex}`,
    `ORD_${hex}`,
    `ord-${hex}`,
    `ord_${hex.toUpperCase()}`,
    'ord_017f22e2-79b0-7cc3-98c4-dc0c0c07398f',
    `ord_${hex}0`,
    `ord_${hex.slice(1)}`,
    `ord_${hex}\n`,
    ` ord_${hex}`,
    `ord_ord_${hex}`,
    `ord_${'g'.repeat(32)}`,
    `ord_${'٣'.repeat(32)}`,
  ]) {
    assert.equal(parseId('ord', text), undefined, text);
  }
});
