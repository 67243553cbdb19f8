import assert from 'node:assert/strict';
import { test } from 'node:test';
import { check } from './chaos/check/check.ts';
import type { Answered, History, Intent, IntentKind, Try } from './chaos/history.ts';
import type { KeyState, Snapshot } from './chaos/snapshot.ts';
import { boundMsOf } from './chaos/timing.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] extends readonly (infer I)[] ? Mutable<I>[] : T[K] };

/** A run in which everything went well: one intent of each kind that the checker treats in its own way. */
type Run = { history: Mutable<History>; snapshot: Mutable<Snapshot> };

const orderId = 'ord_0';
const jobId = 'job_0';

function cleanRun(): Run {
  const history: Run['history'] = { intents: [], tries: [], seen: [], faults: [], crashes: [] };
  const snapshot: Run['snapshot'] = { keys: [], orders: [], docs: [], jobs: [], ledger: [], balances: [], holds: [] };
  const intend = (kind: IntentKind, status: number, body: unknown, more: Partial<Intent> = {}) => {
    const id = history.intents.length;
    history.intents.push({ id, kind, tenant: 'acme', key: `k-${id}`, ...more });
    history.tries.push(tryOf(id, answer(status, body, 'false')));
    const { key } = history.intents[id] as Intent;
    if (key !== undefined) snapshot.keys.push(keyOf(key, status, JSON.stringify(body)));
  };
  intend('order', 201, { order_id: orderId });
  snapshot.orders.push({ tenant: 'acme', id: orderId, item: '#0#' });
  intend('new_doc', 201, { id: 'doc_1', version: 1, body: '#1#' });
  const edit = { docId: 'doc_1' };
  intend('edit', 200, { id: 'doc_1', version: 2, body: '#1# #2#' }, { ...edit, baseVersion: 1 });
  intend('rewrite', 200, { id: 'doc_1', version: 3, body: 'Do #3# #1# #2#' }, { ...edit, baseVersion: 2 });
  snapshot.docs.push({ tenant: 'acme', id: 'doc_1', version: 3, body: 'Do #3# #1# #2#', isDeleted: false });
  intend('job', 202, { job_id: jobId });
  snapshot.jobs.push({ tenant: 'acme', id: jobId, prompt: 'p #4#', status: 'succeeded', cost: 70, used: 70 });
  history.seen.push({ tenant: 'acme', docId: 'doc_1', version: 2, body: '#1# #2#' });
  const entry = (kind: string, type: string, id: string, amount: number) =>
    snapshot.ledger.push({ tenant: 'acme', kind, type, id, amount } as Snapshot['ledger'][number]);
  entry('credit', 'credit', 'seed', 1_000);
  for (const [type, id] of [
    ['job', jobId],
    ['rewrite', 'doc_1:0'],
  ] as const) {
    entry('hold', type, id, -100);
    entry('release', type, id, 100);
    entry('charge', type, id, -70);
  }
  snapshot.balances.push({ tenant: 'acme', balance: 860, held: 0 });
  return { history, snapshot };
}

function answer(status: number, body: unknown, replayed: Answered['replayed'], code?: string): Answered {
  return { kind: 'answered', status, body: JSON.stringify(body), code, replayed, headers: '- - -' };
}

function tryOf(intent: number, end: Try['end'], more: Partial<Try> = {}): Try {
  const at = {
    copy: 0,
    calm: false,
    server: 'server-1',
    network: 'none',
    fromMs: 0,
    toMs: 10,
    limitMs: 1_000,
  } as const;
  return { intent, end, ...at, ...more };
}

function keyOf(key: string, status: number, body: string | null): KeyState {
  return { tenant: 'acme', key, state: 'done', isLeased: false, isOverdue: false, attempt: 1, status, body };
}

function refused(code: string, status = 412): Answered {
  return answer(status, { code }, undefined, code);
}

/** Intents of the clean run. */
const [order, edit, job] = [0, 2, 4] as const;

/** What is planted in a clean run, and the promises that are seen to be broken. */
const plants: Readonly<Record<string, readonly [rules: readonly string[], plant: (run: Run) => void]>> = {
  'an order placed twice': [
    ['done once'],
    ({ snapshot }) => void snapshot.orders.push({ tenant: 'acme', id: 'ord_1', item: '#0#' }),
  ],
  'a lost order': [['nothing lost', 'work and answer together'], ({ snapshot }) => void snapshot.orders.pop()],
  'an order without a stored answer': [
    ['one answer', 'work and answer together'],
    ({ snapshot }) => void snapshot.keys.splice(order, 1),
  ],
  'a stored answer without its order': [
    ['work and answer together'],
    ({ history, snapshot }) => {
      history.tries.splice(order, 1);
      snapshot.orders.pop();
    },
  ],
  'a wrong replay': [
    ['one answer'],
    ({ history }) => void history.tries.push(tryOf(order, answer(201, { order_id: 'ord_9' }, 'true'))),
  ],
  'a replay with another Location': [
    ['one answer'],
    ({ history }) =>
      void history.tries.push(
        tryOf(order, { ...answer(201, { order_id: orderId }, 'true'), headers: '/v1/orders/ord_9 - -' }),
      ),
  ],
  'two answers that say they are the first': [
    ['one answer'],
    ({ history }) => void history.tries.push(tryOf(order, answer(201, { order_id: orderId }, 'false'))),
  ],
  'a success that is refused to its second copy': [
    ['one’s own success is never refused'],
    ({ history }) => void history.tries.push(tryOf(edit, refused('precondition_failed'))),
  ],
  'a copy that is taken for another request': [
    ['one’s own success is never refused', 'no refusal out of place'],
    ({ history }) => void history.tries.push(tryOf(job, refused('idempotency_key_reused', 409))),
  ],
  'a 500': [
    ['no 5xx but 503'],
    ({ history }) => void history.tries.push(tryOf(order, answer(500, {}, undefined, 'internal'))),
  ],
  'a lost edit': [
    ['nothing lost', 'work and answer together', 'no lost edit'],
    ({ snapshot }) => {
      (snapshot.docs[0] as { body: string }).body = 'Do #3# #1#';
    },
  ],
  'an edit that took the version of another': [
    ['no lost edit', 'one text a version', 'done once'],
    ({ history, snapshot }) => {
      const id = history.intents.length;
      history.intents.push({
        id,
        kind: 'unkeyed_edit',
        tenant: 'acme',
        key: undefined,
        docId: 'doc_1',
        baseVersion: 1,
      });
      const body = `#1# #${id}#`;
      history.tries.push(tryOf(id, answer(200, { id: 'doc_1', version: 2, body }, undefined)));
      (snapshot.docs[0] as { body: string }).body += ` #${id}# #${id}#`;
    },
  ],
  'a version with two texts': [
    ['one text a version'],
    ({ history }) => void history.seen.push({ tenant: 'acme', docId: 'doc_1', version: 1, body: '#1# and more' }),
  ],
  'a version that went back': [
    ['no lost edit'],
    ({ snapshot }) => {
      (snapshot.docs[0] as { version: number }).version = 2;
    },
  ],
  'a double charge': [
    ['one charge', 'the books agree'],
    ({ snapshot }) => void snapshot.ledger.push(snapshot.ledger.find((entry) => entry.kind === 'charge') as never),
  ],
  'a job that cost more than was charged': [
    ['one charge'],
    ({ snapshot }) => {
      Object.assign(snapshot.jobs[0] as object, { cost: 80, used: 80 });
    },
  ],
  'two charges for one rewrite': [
    ['one charge'],
    ({ snapshot }) => {
      for (const entry of snapshot.ledger.filter((entry) => entry.type === 'rewrite')) {
        snapshot.ledger.push({ ...entry, id: 'doc_1:1' });
      }
      (snapshot.balances[0] as { balance: number }).balance -= 70;
    },
  ],
  'a hold of a job that never was': [
    ['one hold', 'done once', 'nothing lost', 'work and answer together'],
    ({ snapshot }) => void snapshot.jobs.pop(),
  ],
  'a balance below zero': [
    ['no balance below zero'],
    ({ snapshot }) => {
      (snapshot.ledger[0] as { amount: number }).amount = 100;
      (snapshot.balances[0] as { balance: number }).balance = -40;
    },
  ],
  'a balance that is not its ledger': [
    ['the books agree'],
    ({ snapshot }) => {
      (snapshot.balances[0] as { balance: number }).balance += 1;
    },
  ],
  'a hold that is left open': [
    ['nothing stuck', 'the books agree'],
    ({ snapshot }) => void snapshot.holds.push({ tenant: 'acme', type: 'job', id: jobId, amount: 100 }),
  ],
  'a stuck key': [
    ['nothing stuck'],
    ({ snapshot }) => {
      snapshot.keys.push({ ...keyOf('k-9', 0, null), state: 'in_progress', status: null, isLeased: true });
    },
  ],
  'a key that is never swept': [
    ['nothing stuck'],
    ({ snapshot }) => {
      snapshot.keys.push({ ...keyOf('old', 200, 'x'), isOverdue: true });
    },
  ],
  'a job that never ends': [
    ['nothing stuck'],
    ({ snapshot }) => {
      (snapshot.jobs[0] as { status: string }).status = 'running';
    },
  ],
  'an intent that gets no end in the calm': [
    ['nothing stuck'],
    ({ history }) =>
      void history.tries.push(tryOf(order, refused('request_in_progress', 409), { calm: true, copy: 100 })),
  ],
  'an answer beyond its bound': [
    ['no answer beyond its bound'],
    ({ history }) =>
      void history.tries.push(
        tryOf(order, answer(201, { order_id: orderId }, 'true'), { toMs: boundMsOf('order') + 1 }),
      ),
  ],
  'a process that died by itself': [
    ['no process dies by itself'],
    ({ history }) => void history.crashes.push('server-1 ended with exit code 7'),
  ],
};

test('the checker finds nothing in a run where everything went well', () => {
  const { history, snapshot } = cleanRun();
  assert.deepEqual(check(history, snapshot), []);
});

for (const [what, [rules, plant]] of Object.entries(plants)) {
  test(`the checker finds ${what}`, () => {
    const run = cleanRun();
    plant(run);
    const found = check(run.history, run.snapshot);
    assert.ok(found.length > 0, 'nothing was found');
    const other = found.filter(({ rule }) => !rules.includes(rule));
    assert.deepEqual(other, [], 'something else was found');
    assert.ok(
      found.some(({ rule }) => rule === rules[0]),
      `expected ${rules[0]}: ${JSON.stringify(found)}`,
    );
  });
}

test('the checker takes what nobody was told, and what was refused, as it is', () => {
  const { history, snapshot } = cleanRun();
  const intend = (kind: IntentKind, more: Partial<Intent> = {}) => {
    const id = history.intents.length;
    history.intents.push({ id, kind, tenant: 'acme', key: `k-${id}`, ...more });
    return id;
  };
  // Done, and nobody knows.
  const unheard = intend('order');
  history.tries.push(tryOf(unheard, { kind: 'no_answer', reason: 'connection' }));
  snapshot.orders.push({ tenant: 'acme', id: 'ord_5', item: `#${unheard}#` });
  snapshot.keys.push(keyOf(`k-${unheard}`, 201, '{}'));
  // Not done, and nobody knows that either; its key is free to be taken over.
  const dropped = intend('order');
  history.tries.push(tryOf(dropped, refused('unavailable', 503)));
  snapshot.keys.push({ ...keyOf(`k-${dropped}`, 0, null), state: 'in_progress', status: null });
  // Refused for good.
  const stale = intend('edit', { docId: 'doc_1', baseVersion: 1 });
  history.tries.push(tryOf(stale, refused('precondition_failed')));
  // Refused, and the draft is kept and charged.
  const draft = intend('rewrite', { docId: 'doc_1', baseVersion: 1 });
  history.tries.push(tryOf(draft, answer(412, { draft: 'x' }, 'false', 'precondition_failed')));
  snapshot.keys.push(keyOf(`k-${draft}`, 412, JSON.stringify({ draft: 'x' })));
  // Slow, while its server stood still.
  const ms = boundMsOf('order') + 1_000;
  history.tries.push(tryOf(order, answer(201, { order_id: orderId }, 'true'), { toMs: ms }));
  history.faults.push({ kind: 'stop_server', what: 'server-1', fromMs: 0, toMs: 3_000 });
  assert.deepEqual(check(history, snapshot), []);
});
