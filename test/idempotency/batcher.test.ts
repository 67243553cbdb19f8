import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBatcher } from '../../src/idempotency/batcher.ts';

/** A runner whose batches end when the test says so. */
function controlled() {
  const batches: { requests: readonly number[]; end(error?: Error): void }[] = [];
  let wake = () => {};
  const run = (requests: readonly number[]) =>
    new Promise<number[]>((resolve, reject) => {
      batches.push({
        requests,
        end: (error) => (error === undefined ? resolve(requests.map((n) => n * 10)) : reject(error)),
      });
      wake();
    });
  const started = async (count: number) => {
    while (batches.length < count) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
    return batches[count - 1] as (typeof batches)[number];
  };
  return { run, batches, started };
}

test('requests of one turn travel together, those that come meanwhile in the next batch, each with its own outcome', async () => {
  const { run, started } = controlled();
  const batch = createBatcher(run, 100);
  const first = [batch(1), batch(2)];
  const one = await started(1);
  assert.deepEqual(one.requests, [1, 2]);
  const second = [batch(3), batch(4), batch(5)];
  one.end();
  assert.deepEqual(await Promise.all(first), [10, 20]);
  const two = await started(2);
  assert.deepEqual(two.requests, [3, 4, 5]);
  two.end();
  assert.deepEqual(await Promise.all(second), [30, 40, 50]);
});

test('one batch is in flight at a time and none exceeds its size', async () => {
  const { run, batches, started } = controlled();
  const batch = createBatcher(run, 2);
  const all = [1, 2, 3, 4, 5].map((n) => batch(n));
  for (let count = 1; count <= 3; count += 1) {
    const next = await started(count);
    await new Promise(setImmediate);
    assert.equal(batches.length, count);
    next.end();
  }
  assert.deepEqual(await Promise.all(all), [10, 20, 30, 40, 50]);
  assert.deepEqual(
    batches.map((entry) => entry.requests),
    [[1, 2], [3, 4], [5]],
  );
});

test('a batch that fails fails its own requests, and the next one runs', async () => {
  const { run, started } = controlled();
  const batch = createBatcher(run, 100);
  const failing = [batch(1), batch(2)];
  const one = await started(1);
  const next = batch(3);
  one.end(new Error('lost'));
  for (const outcome of await Promise.allSettled(failing)) assert.equal(outcome.status, 'rejected');
  (await started(2)).end();
  assert.equal(await next, 30);
});

test('a runner that throws instead of rejecting fails its requests like one that rejects', async () => {
  const batch = createBatcher<number, number>(() => {
    throw new Error('at once');
  }, 100);
  await assert.rejects(batch(1), { message: 'at once' });
  await assert.rejects(batch(2), { message: 'at once' });
});
