import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { type EventRow, eventBlock, eventRow } from '../../src/resources/jobs/event-data.ts';
import { createJobFeed } from '../../src/resources/jobs/feed.ts';

const job = { tenant: 'acme', id: '01a22f25-a4de-7ac3-9b13-6845c51d1a5f' };
const hex = job.id.replaceAll('-', '');
const never = new AbortController().signal;

/** A store whose pages are small and whose reads take a few turns. */
function createStore(pageRows: number) {
  const rows: EventRow[] = [];
  let reads = 0;
  return {
    rows,
    reads: () => reads,
    add: (text: string) => void rows.push(eventRow(rows.length + 1, { event: 'delta', text })),
    end: () => void rows.push(eventRow(rows.length + 1, { event: 'error', code: 'internal' })),
    async read(_job: unknown, after: number) {
      reads += 1;
      const events = rows.slice(after, after + pageRows);
      for (let i = 0; i < (after % 3) + 1; i += 1) await turn();
      return { events, hasMore: events.length === pageRows, isDeleted: false };
    },
  };
}

const step = fc.oneof(
  // Some are so long that a few of them push the oldest out of memory.
  fc.record({ kind: fc.constant('add' as const), length: fc.constantFrom(1, 500, 30_000, 120_000) }),
  fc.constant({ kind: 'notice' as const }),
  fc.record({ kind: fc.constant('open' as const), at: fc.nat({ max: 40 }), slow: fc.nat({ max: 4 }) }),
  fc.constant({ kind: 'turn' as const }),
);

test('whatever is written and whoever comes when, each reader gets every event behind its place once, in order', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 5 }), async (steps, pageRows) => {
      const store = createStore(pageRows);
      const feed = createJobFeed(store.read);
      const readers: Promise<{ after: number; got: string }>[] = [];
      const read = async (after: number, slow: number) => {
        const reader = feed.open(job, after);
        let got = '';
        for (;;) {
          const next = await reader.next(60_000, never);
          if (next === 'end') break;
          assert.notEqual(next, 'quiet');
          got += (next as readonly string[]).join('');
          for (let i = 0; i < slow * 5; i += 1) await turn();
        }
        reader.close();
        return { after, got };
      };
      for (const one of steps) {
        if (one.kind === 'add') store.add('x'.repeat(one.length));
        else if (one.kind === 'notice') feed.notice(hex);
        else if (one.kind === 'turn') await turn();
        else readers.push(read(Math.min(one.at, store.rows.length), one.slow));
      }
      store.end();
      feed.noticeUpTo(job, store.rows.length);
      for (const { after, got } of await Promise.all(readers)) {
        assert.equal(got, store.rows.slice(after).map(eventBlock).join(''));
      }
      assert.deepEqual(feed.jobs(), [], 'nothing is kept of a job that nobody reads');
    }),
    { numRuns: 150 },
  );
});

test('readers who wait for a database that is away do not wake one another', async () => {
  const feed = createJobFeed(async () => {
    throw new Error('away');
  });
  const waits = Array.from({ length: 5 }, async (_, i) => {
    // They come one after another, so that each fails while the others wait.
    await sleep(i * 10);
    const reader = feed.open(job, 0);
    const startedMs = performance.now();
    for (let n = 0; n < 3; n += 1) assert.equal(await reader.next(50, new AbortController().signal), 'quiet');
    return performance.now() - startedMs;
  });
  for (const ms of await Promise.all(waits)) assert.ok(ms >= 140, `three pauses of 50 ms took ${ms} ms`);
});

test('events that are deleted under a reader end its stream', async () => {
  const feed = createJobFeed(async () => ({ events: [], hasMore: false, isDeleted: true }));
  const reader = feed.open(job, 3);
  assert.equal(await reader.next(60_000, never), 'end');
});
