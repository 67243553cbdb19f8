import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deriveKey } from '../../src/client/index.ts';
import { parseIdempotencyKey } from '../../src/protocol/idempotency-key.ts';

test('the same parts give the same key, today and in the next release', async () => {
  assert.equal(await deriveKey('run-7', 3), 'b5lLRvoO9I0v0E2zJYplssXmYqwtKT-44EWM1NO7RQI');
  assert.equal(await deriveKey('run-7', '3'), await deriveKey('run-7', 3));
});

test('parts do not run into one another', async () => {
  const keys = await Promise.all([
    deriveKey('a', 'bc'),
    deriveKey('ab', 'c'),
    deriveKey('abc'),
    deriveKey('abc', ''),
    deriveKey('', 'abc'),
    deriveKey('a', 'b', 'c'),
    deriveKey('a\0\0\0\u0002bc'),
  ]);
  assert.equal(new Set(keys).size, keys.length);
});

test('a derived key is one that every server takes', async () => {
  const key = await deriveKey('ein Lauf mit Ümläuten 漢字', 1);
  assert.deepEqual(parseIdempotencyKey([key]), { kind: 'key', key });
  assert.equal(key.length, 43);
});

test('parts that two different ids could share are refused', async () => {
  await assert.rejects(deriveKey(), TypeError);
  await assert.rejects(deriveKey('run', 0.5), TypeError);
  await assert.rejects(deriveKey('run', Number.NaN), TypeError);
  await assert.rejects(deriveKey('run\ud800'), TypeError);
});
