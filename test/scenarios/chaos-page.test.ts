import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type KeptRun, namedTests, reliabilityPage } from './chaos/page.ts';
import { faultKinds } from './chaos/report.ts';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

test('docs/reliability.md is what the last long run makes of it, and that run found nothing', () => {
  const run = JSON.parse(read('docs/reliability.json')) as KeptRun;
  assert.equal(read('docs/reliability.md'), reliabilityPage(run), 'npm run chaos -- --minutes 5 --seed 1 --write docs');
  assert.equal(run.figures.violations, 0);
  assert.ok(run.figures.minutes >= 5);
});

test('in the last long run every kind of fault happened at least ten times', () => {
  const { figures } = JSON.parse(read('docs/reliability.json')) as KeptRun;
  const rare = Object.keys(faultKinds).filter((kind) => (figures.faults[kind] ?? 0) < 10);
  assert.deepEqual(rare, []);
});

test('every test that the page on reliability names is there', () => {
  const missing = namedTests.filter((path) => !existsSync(fileURLToPath(new URL(`../${path}`, import.meta.url))));
  assert.deepEqual(missing, []);
});
