import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { createDeltaWriter } from '../../src/resources/jobs/delta-writer.ts';

/** A store that writes as slowly as it is told, one after another. */
function createSink(turns: number) {
  const batches: { text: string; tokens: number }[] = [];
  let active = 0;
  return {
    batches,
    async write(text: string, tokens: number) {
      active += 1;
      assert.equal(active, 1, 'one batch at a time');
      for (let i = 0; i < turns; i += 1) await turn();
      batches.push({ text, tokens });
      active -= 1;
    },
  };
}

const piece = fc.record({ length: fc.constantFrom(1, 10, 300, 600, 2_000), turns: fc.nat({ max: 3 }) });

test('whatever is said at whatever pace, a flush leaves every text written once and in order', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 30 }), fc.nat({ max: 4 }), async (pieces, turns) => {
      const sink = createSink(turns);
      const writer = createDeltaWriter(sink.write);
      let said = '';
      for (const [i, { length, turns: pause }] of pieces.entries()) {
        const text = String.fromCharCode(97 + (i % 26)).repeat(length);
        said += text;
        await writer.push(text, 1);
        for (let n = 0; n < pause; n += 1) await turn();
      }
      await writer.flush();
      assert.equal(sink.batches.map((batch) => batch.text).join(''), said);
      assert.equal(
        sink.batches.reduce((sum, batch) => sum + batch.tokens, 0),
        pieces.length,
      );
    }),
  );
});

test('short texts wait for one another, 512 characters do not', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const sink = createSink(0);
  const writer = createDeltaWriter(sink.write);
  await writer.push('a', 1);
  await writer.push('b', 1);
  t.mock.timers.tick(49);
  await turn();
  assert.deepEqual(sink.batches, []);
  t.mock.timers.tick(1);
  await turn();
  assert.deepEqual(sink.batches, [{ text: 'ab', tokens: 2 }]);
  await writer.push('c'.repeat(512), 3);
  await turn();
  assert.equal(sink.batches.length, 2);
});

test('once a batch could not be written, every further text is refused with its error', async () => {
  const writer = createDeltaWriter(async () => {
    throw new Error('not ours any more');
  });
  await writer.push('x'.repeat(600), 1);
  await assert.rejects(writer.flush(), /not ours/);
  await assert.rejects(writer.push('more', 1), /not ours/);
  await assert.rejects(writer.flush(), /not ours/);
});

test('text that waits for a slow database is bounded: the model is read no further', async () => {
  let proceed = () => {};
  const writer = createDeltaWriter(
    () =>
      new Promise((resolve) => {
        proceed = resolve;
      }),
  );
  await writer.push('x'.repeat(600), 1);
  let isTaken = false;
  const pushing = writer.push('y'.repeat(70_000), 1).then(() => {
    isTaken = true;
  });
  for (let i = 0; i < 5; i += 1) await turn();
  assert.equal(isTaken, false);
  proceed();
  await pushing;
  writer.discard();
});
