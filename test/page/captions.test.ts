import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { captionsOf, type Statistics } from '../../src/page/web/captions.ts';

const results = fileURLToPath(new URL('../../docs/results/', import.meta.url));
const statistics = JSON.parse(readFileSync(`${results}statistics.json`, 'utf8')) as Statistics;

test('every chart of the benchmark has words of its own, and every figure in them was measured', () => {
  const captions = captionsOf(statistics);
  for (const { cell, words } of captions) {
    assert.ok(existsSync(`${results}${cell}.svg`), cell);
    assert.ok(words !== undefined && !/–|NaN|undefined/.test(words), `${cell}: ${words}`);
  }
  assert.equal(captions.length, new Set(captions.map(({ alt }) => alt)).size);
});

test('an experiment that is void or was not measured has no figures on the page', () => {
  const variants = statistics.variants.map((variant) =>
    variant.cell === 'keys' ? { ...variant, arms: { ...variant.arms, keyed: { isVoid: true, median: {} } } } : variant,
  );
  const without = variants.filter(({ cell }) => cell !== 'tags');
  const words = new Map(captionsOf({ variants: without }).map((caption) => [caption.cell, caption.words]));
  assert.equal(words.get('keys'), undefined);
  assert.equal(words.get('tags'), undefined);
  assert.ok(words.get('locking'));
});

test('the words of a chart change with its figures', () => {
  const variants = statistics.variants.map((variant) => {
    const arms = Object.entries(variant.arms).map(([name, arm]) => {
      const median = Object.entries(arm.median).map(([figure, value]) => [figure, value * 3]);
      return [name, { ...arm, median: Object.fromEntries(median) }];
    });
    return { ...variant, arms: Object.fromEntries(arms) };
  });
  const before = captionsOf(statistics);
  for (const [index, { cell, words }] of captionsOf({ variants }).entries()) {
    assert.notEqual(words, before[index]?.words, cell);
  }
});
