import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { formatCursor, parseCursor } from '../../src/protocol/cursor.ts';

const mac = (text: string) => createHmac('sha256', 'k').update(text).digest('base64url').slice(0, 16);
const binding = 'acme /v1/orders';
const position = ['2026-01-02T03:04:05.006789Z', 'ord_0190'];

test('a cursor gives its position back to the list it was made for', () => {
  for (const strings of [position, [], [''], ['é漢😀', '"\\', '\u0000'], ['a'.repeat(200)]]) {
    const cursor = formatCursor(binding, strings, mac);
    assert.match(cursor, /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/);
    assert.deepEqual(parseCursor(cursor, binding, mac), strings);
  }
});

test('a cursor of another tenant, route or filter, or under another secret, is no cursor', () => {
  const cursor = formatCursor(binding, position, mac);
  for (const other of ['', 'globex /v1/orders', 'acme /v1/docs', 'acme /v1/orders?status=queued', ' acme /v1/orders']) {
    assert.equal(parseCursor(cursor, other, mac), undefined, other);
  }
  assert.equal(
    parseCursor(cursor, binding, (text) => mac(`${text}!`)),
    undefined,
  );
});

test('a cursor with any character changed, added or left out is no cursor', () => {
  const cursor = formatCursor(binding, position, mac);
  for (let i = 0; i < cursor.length; i++) {
    const other = cursor[i] === 'A' ? 'B' : 'A';
    assert.equal(parseCursor(cursor.slice(0, i) + other + cursor.slice(i + 1), binding, mac), undefined, `at ${i}`);
    assert.equal(parseCursor(cursor.slice(0, i) + cursor.slice(i + 1), binding, mac), undefined, `without ${i}`);
  }
  assert.equal(
    parseCursor('check', binding, () => 'check'),
    undefined,
    'a check value alone',
  );
  for (const text of [
    '',
    '.',
    'x',
    ' ',
    `${cursor} `,
    ` ${cursor}`,
    `${cursor}=`,
    `${cursor}.`,
    '%',
    '漢.漢',
    '..',
    cursor.toUpperCase(),
  ]) {
    assert.equal(parseCursor(text, binding, mac), undefined, text);
  }
});

test('a cursor has at most 512 characters: longer ones are neither made nor read', () => {
  assert.throws(() => formatCursor(binding, ['a'.repeat(368)], mac), RangeError);
  const longest = formatCursor(binding, ['a'.repeat(367)], mac);
  assert.equal(longest.length, 512);
  assert.deepEqual(parseCursor(longest, binding, mac), ['a'.repeat(367)]);
  let asked = 0;
  const counting = (text: string) => {
    asked++;
    return mac(text);
  };
  assert.equal(parseCursor(`${'a'.repeat(600)}.x`, binding, counting), undefined);
  assert.equal(asked, 0);
});
