import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createWaitingRoom, nameOfKey } from '../../src/idempotency/waiting-room.ts';

const never = new AbortController().signal;

/** A room whose question to the database the test answers. */
function roomWith(stillRunning: (names: string[]) => string[] | Promise<string[]>) {
  const errors: unknown[] = [];
  const room = createWaitingRoom(
    async (keys) => new Set(await stillRunning(keys.map(({ tenant, key }) => nameOfKey(tenant, key)))),
    (error) => errors.push(error),
  );
  return { room, errors };
}

test('the end of a claim wakes those who wait for its key, in its tenant, and nobody else', async (t) => {
  const { room } = roomWith((names) => names);
  t.after(() => room.stop());
  const woken: string[] = [];
  const park = (tenant: string, key: string) =>
    room.park(tenant, key, 60_000, never).then((was) => was && woken.push(nameOfKey(tenant, key)));
  const parked = [park('acme', 'k'), park('acme', 'k'), park('globex', 'k'), park('acme', 'other')];
  room.wake('acme', 'k');
  await Promise.all(parked.slice(0, 2));
  assert.deepEqual(woken, ['acme k', 'acme k']);
  assert.equal(room.count(), 2);
});

test('one question asks after all parked keys, and those that have ended are woken', async (t) => {
  const asked: string[][] = [];
  const { room } = roomWith((names) => {
    asked.push(names);
    return names.filter((name) => name === 'acme running');
  });
  t.after(() => room.stop());
  void room.park('acme', 'running', 60_000, never);
  await Promise.all([room.park('acme', 'ended', 60_000, never), room.park('acme', 'ended', 60_000, never)]);
  assert.deepEqual(new Set(asked.flat()), new Set(['acme running', 'acme ended']));
  assert.equal(room.count(), 1);
});

test('a question that fails wakes nobody and is asked again', async (t) => {
  let asked = 0;
  const { room, errors } = roomWith(() => {
    asked += 1;
    if (asked === 1) throw new Error('the database is away');
    return [];
  });
  t.after(() => room.stop());
  assert.equal(await room.park('acme', 'k', 60_000, never), true);
  assert.equal(asked, 2);
  assert.equal(errors.length, 1);
});

test('who leaves in any way is forgotten: time up, client gone, woken', async (t) => {
  const { room } = roomWith((names) => names);
  t.after(() => room.stop());
  const client = new AbortController();
  const parked = [
    room.park('acme', 'a', 10, never),
    room.park('acme', 'b', 60_000, client.signal),
    room.park('acme', 'c', 60_000, never),
  ];
  assert.equal(room.count(), 3);
  client.abort();
  room.wake('acme', 'c');
  assert.deepEqual(await Promise.all(parked), [true, true, true]);
  assert.equal(room.count(), 0);
});

test('a client that is gone already, and one that comes after the stop, are not parked', async () => {
  const { room } = roomWith((names) => names);
  const gone = new AbortController();
  gone.abort();
  assert.equal(await room.park('acme', 'k', 60_000, gone.signal), false);
  const waiting = room.park('acme', 'k', 60_000, never);
  await room.stop();
  assert.equal(await waiting, true);
  assert.equal(await room.park('acme', 'k', 60_000, never), false);
  assert.equal(room.count(), 0);
});

test('a full room sends the next one away at once', async () => {
  const { room } = roomWith((names) => names);
  const parked = Array.from({ length: 2_000 }, (_, i) =>
    room.park('acme', `k${i}`, 60_000, new AbortController().signal),
  );
  assert.equal(await room.park('acme', 'one-more', 60_000, never), false);
  await room.stop();
  await Promise.all(parked);
});
