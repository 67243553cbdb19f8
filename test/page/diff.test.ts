import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { applyOnTop, diffLines } from '../../src/page/web/diff.ts';

/** Texts of a few short lines, so that lines repeat. */
const text = fc
  .array(fc.constantFrom('a', 'b', 'c', ''), { minLength: 1, maxLength: 8 })
  .map((lines) => lines.join('\n'));

test('a comparison by lines holds both texts, whole and in order', () => {
  fc.assert(
    fc.property(text, text, (before, after) => {
      const lines = diffLines(before, after);
      const without = (kind: string) => lines.filter((line) => line.kind !== kind).map((line) => line.text);
      assert.equal(without('added').join('\n'), before);
      assert.equal(without('removed').join('\n'), after);
    }),
  );
});

test('a comparison names the line that changed and no other', () => {
  assert.deepEqual(diffLines('one\ntwo\nthree', 'one\n2\nthree'), [
    { kind: 'same', text: 'one' },
    { kind: 'removed', text: 'two' },
    { kind: 'added', text: '2' },
    { kind: 'same', text: 'three' },
  ]);
});

test('edits of different lines are both kept when one is applied on top of the other', () => {
  const base = 'Monday\nTuesday\nFriday';
  const on = applyOnTop(base, 'Monday: mine\nTuesday\nFriday', 'Monday\nTuesday\nFriday: theirs\nSaturday');
  assert.deepEqual(on, { text: 'Monday: mine\nTuesday\nFriday: theirs\nSaturday', contested: false });
});

test('where both changed the same line, the one on top is taken and it is said', () => {
  assert.deepEqual(applyOnTop('a\nb', 'a\nmine', 'a\ntheirs'), { text: 'a\nmine', contested: true });
  assert.deepEqual(applyOnTop('a\nb', 'a\nsame', 'a\nsame'), { text: 'a\nsame', contested: false });
});

test('applied on top of what it came from a change is itself, and no change leaves theirs as it is', () => {
  fc.assert(
    fc.property(text, text, (base, other) => {
      assert.deepEqual(applyOnTop(base, other, base), { text: other, contested: false });
      assert.deepEqual(applyOnTop(base, base, other), { text: other, contested: false });
    }),
  );
});
