import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTagMemory, type Remembered } from '../../src/client/tag-memory.ts';

const answer = (text: string): Remembered => ({ tag: '"t"', status: 200, text });

test('an answer is found by token and URL together', () => {
  const memory = createTagMemory();
  memory.keep('a', '/x', answer('one'));
  assert.equal(memory.find('a', '/x')?.text, 'one');
  assert.equal(memory.find('b', '/x'), undefined);
  assert.equal(memory.find('a', '/y'), undefined);
  memory.forget('a', '/x');
  assert.equal(memory.find('a', '/x'), undefined);
});

test('of too many answers the one that was not used for longest goes', () => {
  const memory = createTagMemory({ maxEntries: 2, maxBytes: 1_000_000 });
  memory.keep('a', '/1', answer('1'));
  memory.keep('a', '/2', answer('2'));
  memory.find('a', '/1');
  memory.keep('a', '/3', answer('3'));
  assert.equal(memory.find('a', '/2'), undefined);
  assert.equal(memory.find('a', '/1')?.text, '1');
  assert.equal(memory.find('a', '/3')?.text, '3');
});

test('answers together stay below the bound of bytes, whatever is kept and kept again', () => {
  const memory = createTagMemory({ maxEntries: 100, maxBytes: 1_000 });
  const urls = ['/1', '/2', '/3', '/4', '/5'];
  for (let round = 0; round < 50; round += 1) {
    for (const url of urls) memory.keep('a', url, answer('x'.repeat(100)));
  }
  const kept = urls.filter((url) => memory.find('a', url) !== undefined);
  assert.deepEqual(kept, ['/2', '/3', '/4', '/5']);
});

test('an answer larger than the whole memory is not kept and leaves the memory usable', () => {
  const memory = createTagMemory({ maxEntries: 100, maxBytes: 1_000 });
  memory.keep('a', '/big', answer('x'.repeat(1_000)));
  assert.equal(memory.find('a', '/big'), undefined);
  memory.keep('a', '/small', answer('x'));
  assert.equal(memory.find('a', '/small')?.text, 'x');
});
