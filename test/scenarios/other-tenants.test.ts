import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { type TestContext, test } from 'node:test';
import { contract } from '../../src/protocol/contract.ts';
import type { Procedure } from '../../src/protocol/procedure.ts';
import { atEnd } from '../helpers/cleanup.ts';
import { openStream } from '../helpers/jobs.ts';
import { type Called, type CallOptions, startServer, type TestServer, testToken } from '../helpers/server.ts';

/*
 * What one tenant has, another must not be able to tell from what nobody has: not by an answer, a header, a cursor or the time
 * it takes.
 */

/** What acme has: an id, a tag and a cursor for each kind of thing. */
type Belongings = {
  readonly ids: { readonly [collection: string]: string };
  readonly tags: { readonly [collection: string]: string };
  readonly cursors: { readonly [path: string]: string };
  readonly key: string;
};

const key = 'acme-key-0123456789';
const order = { cents: 3_000, item: 'pro-plan' };
/** Ids of the same form that nobody has. */
const nobodys: Belongings['ids'] = {
  orders: 'ord_0193a0000000700080000000000000ff',
  docs: 'no-such-doc',
  jobs: 'job_0193a0000000700080000000000000ff',
};

async function settle(server: TestServer): Promise<Belongings> {
  const post = async (path: string, body: unknown, itsKey: string) => {
    const answer = await server.call(`POST ${path}`, { key: itsKey, body });
    assert.ok(answer.status < 300, answer.text);
    return answer;
  };
  const made = await post('/v1/orders', order, key);
  await post('/v1/orders', order, `${key}-2`);
  const doc = await server.call('PUT /v1/docs/plan', {
    headers: { 'if-none-match': '*' },
    body: { title: 'Plan', body: 'secret' },
  });
  await post('/v1/docs', { title: 'Other', body: '' }, `${key}-3`);
  const job = await post('/v1/jobs', { kind: 'generate', prompt: 'Say something.' }, `${key}-4`);
  const other = await post('/v1/jobs', { kind: 'generate', prompt: 'Say more.' }, `${key}-5`);
  for (const { json } of [job, other]) await (await openStream(server, json.job_id)).rest();
  const cursors: Record<string, string> = {};
  for (const path of ['/v1/orders', '/v1/docs', '/v1/jobs', '/v1/ledger']) {
    const page = await server.call(`GET ${path}?limit=1`);
    const link = /[?&]after=([^&>]+)/.exec(page.headers.get('link') ?? '')?.[1];
    cursors[path] = link ?? encodeURIComponent(page.json.next as string);
  }
  const ids = { orders: made.json.order_id, docs: 'plan', jobs: job.json.job_id };
  const tagOf = async (path: string) => (await server.call(`GET ${path}`)).headers.get('etag') ?? '';
  return {
    ids,
    tags: {
      orders: await tagOf(`/v1/orders/${ids.orders}`),
      docs: doc.headers.get('etag') ?? '',
      jobs: await tagOf(`/v1/jobs/${ids.jobs}`),
    },
    cursors,
    key,
  };
}

const collectionOf = (procedure: Procedure) => procedure.path.split('/')[2] ?? '';
const procedures: readonly Procedure[] = Object.values(contract);
const bodies: { readonly [path: string]: unknown } = {
  'PUT /v1/docs/{id}': { title: 'Mine', body: 'mine' },
  'PATCH /v1/docs/{id}': { title: 'Mine' },
  'POST /v1/docs/{id}/rewrite': { instruction: 'Shorten it.' },
};

/** Requests for one thing, with everything that its owner knows of it. */
function requestsFor(procedure: Procedure, id: string, tag: string): { line: string; options: CallOptions }[] {
  const line = `${procedure.method} ${procedure.path.replace('{id}', id)}`;
  const body = bodies[`${procedure.method} ${procedure.path}`];
  const contentType = procedure.method === 'PATCH' ? { 'content-type': 'application/merge-patch+json' } : {};
  const isKeyed = procedure.method === 'POST';
  const conditions: Record<string, string>[] =
    procedure.method === 'GET'
      ? [{}, { 'if-none-match': tag }, { 'if-none-match': '*' }, { 'if-match': tag }, { 'last-event-id': '1' }]
      : [{ 'if-match': tag }, { 'if-match': '*' }, {}];
  return conditions.map((condition, n) => ({
    line,
    options: {
      tenant: 'globex',
      headers: { ...contentType, ...condition },
      ...(body === undefined ? {} : { body }),
      ...(isKeyed ? { key: `globex-${procedure.path}-${n}-${id}` } : {}),
    },
  }));
}

/** All of an answer that is not of one request alone, with the id taken out. */
function told({ status, headers, text }: Called, id: string): unknown {
  const kept = [...headers].filter(([name]) => !['date', 'x-trace-id', 'content-length', 'traceparent'].includes(name));
  const rest = text.replaceAll(id, '{id}').replace(/"trace_id":"[0-9a-f]+"/, '"trace_id":""');
  return { status, headers: kept.map(([name, value]) => [name, value.replaceAll(id, '{id}')]), rest };
}

const withId = procedures.filter((procedure) => procedure.path.includes('{id}'));

test('what another tenant has is answered as what nobody has: every route with an id, its tags and its stream', async (t) => {
  const server = await startServer(t, { seedCredits: true });
  const acme = await settle(server);
  assert.ok(withId.length >= 8);
  for (const procedure of withId) {
    const collection = collectionOf(procedure);
    const [id, none, tag] = [acme.ids[collection], nobodys[collection], acme.tags[collection]];
    assert.ok(id !== undefined && none !== undefined && tag, `${procedure.path} needs an example in this test`);
    const theirs = requestsFor(procedure, id, tag);
    const nobody = requestsFor(procedure, none, tag);
    for (const [n, { line, options }] of theirs.entries()) {
      const answer = await server.call(line, options);
      const missing = await server.call(nobody[n]?.line ?? '', nobody[n]?.options);
      assert.deepEqual(told(answer, id), told(missing, none), `${line} ${JSON.stringify(options.headers)}`);
      assert.ok(answer.status >= 400, line);
    }
  }
  const untouched = await server.call('GET /v1/docs/plan');
  assert.deepEqual([untouched.json.body, untouched.headers.get('etag')], ['secret', acme.tags.docs]);
  const job = await server.call(`GET /v1/jobs/${acme.ids.jobs}`);
  assert.equal(job.json.status, 'succeeded');
});

test('another tenant’s cursor is refused as one that nobody made, its key is free, and lists hold one’s own alone', async (t) => {
  const server = await startServer(t, { seedCredits: true });
  const acme = await settle(server);
  const ask = (line: string, options: CallOptions = {}) => server.call(line, { tenant: 'globex', ...options });

  const lists = procedures.filter(
    ({ method, path, query }) => method === 'GET' && query !== undefined && !path.includes('{'),
  );
  assert.deepEqual(lists.map(({ path }) => path).sort(), Object.keys(acme.cursors).sort());
  for (const { path } of lists) {
    const cursor = acme.cursors[path] as string;
    assert.equal((await server.call(`GET ${path}?after=${cursor}`)).status, 200);
    const answer = await ask(`GET ${path}?after=${cursor}`);
    const garbage = await ask(`GET ${path}?after=AAAA`);
    assert.deepEqual(told(answer, cursor), told(garbage, 'AAAA'), path);
    assert.equal(answer.status, 400);
    const { items } = (await ask(`GET ${path}`)).json;
    assert.equal(
      items.filter((item: { kind?: string }) => item.kind !== 'grant' && item.kind !== 'credit').length,
      0,
      path,
    );
  }

  const state = await ask(`GET /v1/idempotency-keys/${acme.key}`);
  assert.deepEqual(
    told(state, acme.key),
    told(await ask('GET /v1/idempotency-keys/nobodys-key-9876'), 'nobodys-key-9876'),
  );
  const own = await ask('POST /v1/orders', { key: acme.key, body: order });
  assert.deepEqual([own.status, own.headers.get('idempotent-replayed')], [201, 'false']);
  assert.notEqual(own.json.order_id, acme.ids.orders);
  const replay = await server.call('POST /v1/orders', { key: acme.key, body: order });
  assert.equal(replay.json.order_id, acme.ids.orders);
});

const pairs = 1_000;
/** Five standard deviations of a fair coin thrown a thousand times: chance crosses it once in a million runs. */
const seen = 5 * Math.sqrt(pairs / 4);

/** How far from even the odds are that the first takes longer than the second, in pairs of requests whose order is thrown. */
async function bias(t: TestContext, first: () => Promise<number>, second: () => Promise<number>): Promise<number> {
  for (let n = 0; n < 50; n += 1) await Promise.all([first(), second()]);
  let slower = 0;
  for (let n = 0; n < pairs; n += 1) {
    const isFirst = Math.random() < 0.5;
    const early = isFirst ? await first() : await second();
    const late = isFirst ? await second() : await first();
    if (isFirst ? early > late : late > early) slower += 1;
  }
  const off = Math.abs(slower - pairs / 2);
  t.diagnostic(`off by ${off} of ${pairs}, seen from ${seen.toFixed(0)} on`);
  return off;
}

test('a thousand tries can’t tell by the time whether another tenant has a thing or nobody', async (t) => {
  const server = await startServer(t, { seedCredits: true, env: { LOG_LEVEL: 'warn' } });
  const acme = await settle(server);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  atEnd(t, () => agent.destroy());
  const authorization = `Bearer ${await testToken({ tenant: 'globex' })}`;
  /** Milliseconds to the end of the answer. */
  const timed = (path: string, who = authorization) =>
    new Promise<number>((resolve, reject) => {
      const startedMs = performance.now();
      request(server.url + path, { agent, headers: { authorization: who } }, (answer) => {
        answer.resume().once('end', () => resolve(performance.now() - startedMs));
      })
        .once('error', reject)
        .end();
    });
  const paths: [theirs: string, nobodys: string][] = [
    [`/v1/docs/${acme.ids.docs}`, '/v1/docs/plam'],
    [`/v1/orders/${acme.ids.orders}`, `/v1/orders/${nobodys.orders}`],
    [`/v1/idempotency-keys/${acme.key}`, '/v1/idempotency-keys/acme-key-9876543210'],
  ];
  for (const [theirs, none] of paths) {
    assert.ok(
      (await bias(
        t,
        () => timed(theirs),
        () => timed(none),
      )) < seen,
      theirs,
    );
  }

  await t.test('and would see one look into a table more', async (within) => {
    const off = await bias(
      within,
      () => timed(paths[0]?.[0] as string),
      () => timed('/v1/no-such-route'),
    );
    assert.ok(off > seen, String(off));
  });
});
