import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatLeft, startProgress } from '../../bench/progress.ts';

const steps = [
  { name: 'one', estimateMs: 10_000 },
  { name: 'two', estimateMs: 100_000 },
];

function display(isTTY: boolean) {
  const written: string[] = [];
  let nowMs = 0;
  const progress = startProgress(steps, { isTTY, write: (text: string) => written.push(text) }, () => nowMs);
  return { progress, written, last: () => written.at(-1) ?? '', pass: (ms: number) => (nowMs += ms) };
}

test('a terminal is shown what is running and how long is left', () => {
  const { progress, last, pass } = display(true);
  progress.say('round 1');
  assert.match(last(), /\[1\/2\] one · round 1 · about 1:50 left$/);
  pass(5_000);
  progress.say('round 2');
  assert.match(last(), /round 2 · about 1:45 left$/);
  progress.done();
  assert.match(last(), /\[2\/2\] two · about 1:40 left$/);
  progress.end();
});

test('a step that takes longer than expected does not count below nothing', () => {
  const { progress, last, pass } = display(true);
  pass(60_000);
  progress.say('still');
  assert.match(last(), /about 1:4[01] left$/);
  progress.end();
});

test('a file gets a line a step', () => {
  const { progress, written } = display(false);
  progress.say('round 1');
  progress.done();
  progress.done();
  progress.end();
  assert.deepEqual(
    written.map((line) => line.replace(/ · .*/s, '')),
    ['[1/2] one', '[2/2] two'],
  );
});

test('what is left is told in seconds below a minute', () => {
  assert.equal(formatLeft(12_300), 'about 12 s');
  assert.equal(formatLeft(0), 'about 1 s');
  assert.equal(formatLeft(100_000), 'about 1:40');
});
