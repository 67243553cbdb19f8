import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSimulatedProvider, type SimulatedProvider } from '../../src/llm/simulated.ts';
import { createJob, ended, ledgerOf, openStream, postJob, textOf, topUp } from '../helpers/jobs.ts';
import { startServer, type TestServer, type TestServerOptions } from '../helpers/server.ts';
import { testSql, until } from '../helpers/sql.ts';

type Context = Parameters<typeof startServer>[0];

/** A server whose model counts its calls: the P of a case. */
async function start(
  t: Context,
  env: Record<string, string> = {},
  options: Pick<TestServerOptions, 'databaseUrl'> = {},
): Promise<TestServer & { readonly model: SimulatedProvider }> {
  const model = createSimulatedProvider({ latencyMs: Number(env.LATENCY ?? 20), tokens: 20 });
  const server = await startServer(t, { env, provider: model, seedCredits: true, ...options });
  return { ...server, model };
}

test('35: a POST whose answer was lost and that is sent again is one job, one call, one hold and one charge', async (t) => {
  const server = await start(t);
  const first = await postJob(server, 'k', 'Say something.');
  const again = await postJob(server, 'k', 'Say something.');
  assert.equal(first.status, 202);
  assert.equal(again.status, 202);
  assert.equal(again.text, first.text);
  for (const name of ['location', 'link', 'etag', 'content-type']) {
    assert.equal(again.headers.get(name), first.headers.get(name), `17: ${name} is there again`);
    assert.notEqual(again.headers.get(name), null);
  }
  const id = first.json.job_id;
  assert.equal(first.headers.get('location'), `/v1/jobs/${id}`);
  assert.equal(first.headers.get('link'), `</v1/jobs/${id}/events>; rel="events"`);
  await ended(server, id);
  assert.equal((await postJob(server, 'k', 'Say something.')).text, first.text);
  assert.equal(server.model.stats().calls, 1);
  const kinds = (await ledgerOf(server)).of(id).map((item) => item.kind);
  assert.deepEqual(kinds, ['charge', 'release', 'hold']);
});

test('a job holds its prompt and max_tokens at the price of a token, and pays what was used', async (t) => {
  const server = await start(t, { LLM_PRICE_MICROS_PER_TOKEN: '7', WORKERS: '0' });
  const worker = await start(t, { LLM_PRICE_MICROS_PER_TOKEN: '900' }, { databaseUrl: server.databaseUrl });
  const id = await createJob(server, 'k', 'twelve bytes', { maxTokens: 100 });
  const job = await ended(worker, id);
  assert.deepEqual(job.usage, { prompt_tokens: 3, completion_tokens: 20, unknown_attempts: 0 });
  assert.equal(job.cost_micros, 23 * 7, 'the price is the one it was accepted at');
  const amounts = (await ledgerOf(server)).of(id).map((item) => item.amount_micros);
  assert.deepEqual(amounts, [-23 * 7, 103 * 7, -103 * 7]);
});

test('43: with budget for one, ten parallel jobs are one 202 and nine 402, and the key of a 402 is free', async (t) => {
  const server = await startServer(t, { env: { WORKERS: '0' } });
  const cost = (3 + 100) * 10;
  await topUp(server, cost);
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, i) => postJob(server, `k${i}`, 'twelve bytes', { maxTokens: 100 })),
  );
  assert.deepEqual(answers.map((answer) => answer.status).sort(), [202, ...Array(9).fill(402)]);
  const refused = answers.findIndex((answer) => answer.status === 402);
  assert.equal(answers[refused]?.json.code, 'insufficient_credits');
  const { balance_micros, held_micros } = await ledgerOf(server);
  assert.deepEqual([balance_micros, held_micros], [0, cost]);
  const sql = testSql(t, server.databaseUrl);
  const [counts] = await sql`select (select count(*) from jobs) as jobs, (select count(*) from job_events) as events,
    (select count(*) from holds) as holds, (select count(*) from idem where key like 'k_') as keys`;
  assert.deepEqual({ ...counts }, { jobs: '1', events: '1', holds: '1', keys: '1' });
  await topUp(server, cost + 1);
  assert.equal((await postJob(server, `k${refused}`, 'twelve bytes', { maxTokens: 100 })).status, 202);
});

test('a job that is no job is 422 and leaves its key free', async (t) => {
  const server = await start(t, { WORKERS: '0' });
  const bad = [
    { kind: 'generate' },
    { kind: 'other', prompt: 'x' },
    { kind: 'generate', prompt: '' },
    { kind: 'generate', prompt: 'a\u0000b' },
    { kind: 'generate', prompt: 'x', max_tokens: 0 },
    { kind: 'generate', prompt: 'x', max_tokens: 4_097 },
    { kind: 'generate', prompt: 'x', more: 1 },
  ];
  for (const body of bad) {
    const refused = await server.call('POST /v1/jobs', { key: 'k', body });
    assert.deepEqual([refused.status, refused.json.code], [422, 'invalid_body'], JSON.stringify(body));
  }
  assert.equal((await postJob(server, 'k', 'x', { maxTokens: 4_096 })).status, 202);
});

test('jobs count against the rate limit, their replays and their refusals do not use up the key', async (t) => {
  const server = await start(t, { WORKERS: '0', RATE_LIMIT_RPM: '1', RATE_LIMIT_BURST: '1' });
  const first = await postJob(server, 'k1', 'x');
  assert.equal(first.status, 202);
  const limited = await postJob(server, 'k2', 'x');
  assert.deepEqual([limited.status, limited.json.code], [429, 'rate_limited']);
  assert.ok(Number(limited.headers.get('retry-after')) > 0);
  assert.equal((await postJob(server, 'k1', 'x')).text, first.text);
  assert.equal((await server.call('GET /v1/idempotency-keys/k2')).status, 404);
});

test("another tenant's job is not found, whatever is asked of it", async (t) => {
  const server = await start(t, { WORKERS: '0' });
  const id = await createJob(server, 'k', 'x');
  for (const line of [`GET /v1/jobs/${id}`, `GET /v1/jobs/${id}/events`, `PUT /v1/jobs/${id}/cancellation`]) {
    assert.equal((await server.call(line, { tenant: 'globex' })).status, 404, line);
  }
  for (const wrong of ['job_1', 'ord_01a22f25a4de7ac39b136845c51d1a5f', 'job_01A22F25A4DE7AC39B136845C51D1A5F']) {
    assert.equal((await server.call(`GET /v1/jobs/${wrong}`)).status, 404);
    assert.equal((await server.call(`PUT /v1/jobs/${wrong}/cancellation`)).status, 404);
  }
  assert.deepEqual((await server.call('GET /v1/jobs', { tenant: 'globex' })).json, { items: [], next: null });
  assert.equal((await server.call(`GET /v1/jobs/${id}`)).json.status, 'queued');
});

test("a job's tag moves with every change a client can see, and never without one", async (t) => {
  const server = await start(t, { LATENCY: '300' });
  const id = await createJob(server, 'k', 'x');
  const stream = await openStream(server, id);
  const read = async (etag?: string) =>
    await server.call(`GET /v1/jobs/${id}`, { headers: etag === undefined ? {} : { 'if-none-match': etag } });
  await stream.until('delta');
  const running = await read();
  assert.equal(running.json.status, 'running');
  assert.equal(running.json.etag, running.headers.get('etag'));
  await stream.until('delta');
  assert.equal((await read(running.json.etag)).status, 304, 'more text in its stream is no change of the job');
  await stream.rest();
  const done = await read(running.json.etag);
  assert.deepEqual([done.status, done.json.status, done.json.version], [200, 'succeeded', 3]);
  assert.equal((await read(done.json.etag)).status, 304);
});

test('the list of jobs is newest first, by state where asked, and its tag tells a change of state', async (t) => {
  const server = await start(t, { WORKERS: '0' });
  const ids: string[] = [];
  for (let i = 0; i < 5; i += 1) ids.unshift(await createJob(server, `k${i}`, `x${i}`));
  const first = await server.call('GET /v1/jobs?limit=2');
  const second = await server.call(`GET /v1/jobs?limit=3&after=${first.json.next}`);
  const listed = [...first.json.items, ...second.json.items].map((job: { job_id: string }) => job.job_id);
  assert.deepEqual(listed, ids);
  assert.equal(second.json.next, null);
  await server.call(`PUT /v1/jobs/${ids[1]}/cancellation`);
  const cancelled = await server.call('GET /v1/jobs?status=cancelled');
  assert.deepEqual(
    cancelled.json.items.map((job: { job_id: string }) => job.job_id),
    [ids[1]],
  );
  const again = await server.call('GET /v1/jobs?limit=2', {
    headers: { 'if-none-match': first.headers.get('etag') as string },
  });
  assert.equal(again.status, 200);
  assert.deepEqual((await server.call('GET /v1/jobs?status=lost')).json.code, 'invalid_query');
  // A cursor belongs to its filter.
  const filtered = await server.call(`GET /v1/jobs?status=queued&after=${first.json.next}`);
  assert.deepEqual([filtered.status, filtered.json.code], [400, 'invalid_cursor']);
});

for (const text of ['nul', 'surrogate', 'emoji', 'crlf', 'html', 'long:200000']) {
  test(`18: a text of the kind ${text} is kept, streamed and replayed as the model wrote it`, async (t) => {
    const server = await start(t);
    const id = await createJob(server, 'k', `[[text:${text}]]`, { maxTokens: 4_096 });
    const events = await (await openStream(server, id)).rest();
    const [first, second] = await Promise.all([server.call(`GET /v1/jobs/${id}`), server.call(`GET /v1/jobs/${id}`)]);
    assert.equal(first.json.status, 'succeeded');
    assert.equal(first.text, second.text);
    assert.equal(textOf(events), first.json.result);
    const again = await (await openStream(server, id)).rest();
    assert.deepEqual(again, events);
    const { result } = first.json as { result: string };
    if (text === 'nul') assert.ok(result.includes('\u0000'));
    if (text === 'surrogate') assert.ok(!result.isWellFormed());
    if (text === 'emoji') assert.ok(result.includes('🎉') && result.isWellFormed());
    if (text.startsWith('long')) assert.equal(result.length, 200_000);
  });
}

test('an answer that stops at max_tokens is an answer', async (t) => {
  const server = await start(t);
  const job = await ended(server, await createJob(server, 'k', 'x', { maxTokens: 5 }));
  assert.deepEqual([job.status, job.usage.completion_tokens], ['succeeded', 5]);
});

test('where the provider does not tell what was used, pieces are counted', async (t) => {
  const server = await start(t);
  const job = await ended(server, await createJob(server, 'k', '[[no-usage]]12'));
  assert.deepEqual(job.usage, { prompt_tokens: 4, completion_tokens: 20, unknown_attempts: 0 });
});

test('a queued job is claimed in order of its time by as many as there are workers', async (t) => {
  const server = await start(t, { WORKERS: '2', LATENCY: '100' });
  const ids = await Promise.all(Array.from({ length: 6 }, (_, i) => createJob(server, `k${i}`, 'x')));
  let most = 0;
  const watch = setInterval(() => {
    most = Math.max(most, server.model.stats().active);
  }, 5);
  const jobs = await Promise.all(ids.map((id) => ended(server, id)));
  clearInterval(watch);
  assert.deepEqual(new Set(jobs.map((job) => job.status)), new Set(['succeeded']));
  assert.equal(most, 2);
  assert.equal(server.model.stats().calls, 6);
});

test('a stopped server hands its running jobs back at once, and another goes on without waiting for a lease', async (t) => {
  const first = await start(t, { LATENCY: '60000', WORKERS: '3' });
  const ids = await Promise.all(Array.from({ length: 3 }, (_, i) => createJob(first, `k${i}`, '[[first:1]]x')));
  await until(() => first.model.stats().active === 3);
  const second = await start(t, {}, { databaseUrl: first.databaseUrl });
  const streams = await Promise.all(ids.map((id) => openStream(second, id)));
  await Promise.all(streams.map((stream) => stream.until('delta')));
  const startedMs = performance.now();
  await first.stop();
  const events = await Promise.all(streams.map((stream) => stream.rest()));
  t.diagnostic(`from SIGTERM to the end of all jobs: ${(performance.now() - startedMs).toFixed(0)} ms`);
  assert.ok(performance.now() - startedMs < 5_000, 'the lease of 15 s was not waited for');
  assert.equal(first.model.stats().active, 0, 'the calls were hung up');
  for (const [i, id] of ids.entries()) {
    const names = (events[i] ?? []).map(({ event, data }) => (event === 'status' ? data.status : event));
    assert.deepEqual([...new Set(names)], ['queued', 'running', 'delta', 'reset', 'done']);
    const job = (await second.call(`GET /v1/jobs/${id}`)).json;
    assert.deepEqual([job.status, job.attempts], ['succeeded', 2]);
    assert.equal(textOf(events[i] ?? []), job.result);
    const kinds = (await ledgerOf(second)).of(id).map((item) => item.kind);
    assert.deepEqual(kinds, ['charge', 'release', 'hold']);
  }
});

test('a deployment uses up no try: a job that is handed back may still fail as often as before', async (t) => {
  const first = await start(t, { LATENCY: '60000', JOB_MAX_ATTEMPTS: '2' });
  // The second server's model meets this call for the first time.
  const id = await createJob(first, 'k', '[[fail:500 times=1]]');
  await until(async () => (await first.call(`GET /v1/jobs/${id}`)).json.version === 3);
  // As if that failure had not been: now it is running, and will be for long.
  await testSql(t, first.databaseUrl)`update jobs set tries = 0, run_at = now()`;
  await until(() => first.model.stats().active === 1);
  await first.stop();
  const second = await start(t, {}, { databaseUrl: first.databaseUrl });
  const job = await ended(second, id);
  assert.deepEqual([job.status, job.attempts], ['succeeded', 4]);
});
