import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSimulatedProvider } from '../../src/llm/simulated.ts';
import { createJob, ended, ledgerOf, openStream, textOf } from '../helpers/jobs.ts';
import { startServer, type TestServer } from '../helpers/server.ts';
import { until } from '../helpers/sql.ts';

const slowModel = () => createSimulatedProvider({ latencyMs: 60_000, tokens: 3_000 });
const cancel = (server: Pick<TestServer, 'call'>, id: string, key?: string) =>
  server.call(`PUT /v1/jobs/${id}/cancellation`, key === undefined ? {} : { key });

test('40: a queued job is cancelled at once, costs nothing, and is never run', async (t) => {
  const server = await startServer(t, { seedCredits: true, env: { WORKERS: '0' } });
  const id = await createJob(server, 'k', 'x');
  const first = await cancel(server, id);
  const again = await cancel(server, id);
  assert.deepEqual([first.status, first.json.status, first.json.cost_micros], [200, 'cancelled', 0]);
  assert.equal(again.text, first.text);
  assert.equal(again.headers.get('etag'), first.headers.get('etag'));
  const { held_micros, of } = await ledgerOf(server);
  assert.equal(held_micros, 0);
  assert.deepEqual(
    of(id).map((item) => item.kind),
    ['release', 'hold'],
  );
  const events = await (await openStream(server, id)).rest();
  assert.deepEqual(
    events.map(({ event }) => event),
    ['status', 'cancelled'],
  );
  const model = createSimulatedProvider({ latencyMs: 5, tokens: 5 });
  const worker = await startServer(t, { provider: model, databaseUrl: server.databaseUrl });
  await ended(worker, await createJob(worker, 'k2', 'x'));
  assert.equal(model.stats().calls, 1);
});

test('40: a running job is cancelled at once, its call is hung up, and the tokens told so far are settled', async (t) => {
  const model = slowModel();
  const server = await startServer(t, { seedCredits: true, provider: model });
  const id = await createJob(server, 'k', 'four', { maxTokens: 4_000 });
  const stream = await openStream(server, id);
  await stream.until('delta');
  const first = await cancel(server, id);
  const startedMs = performance.now();
  await until(() => model.stats().active === 0);
  t.diagnostic(`the call was hung up ${(performance.now() - startedMs).toFixed(0)} ms after the answer`);
  const again = await cancel(server, id);
  assert.deepEqual([first.status, first.json.status], [200, 'cancelled']);
  assert.equal(again.text, first.text);
  const events = await stream.rest();
  const last = events.at(-1);
  assert.equal(last?.event, 'cancelled');
  assert.deepEqual(last?.data.usage, first.json.usage);
  const words = textOf(events).match(/\S+/g) ?? [];
  assert.equal(first.json.usage.completion_tokens, words.length, 'what a reader got is what is paid');
  assert.equal(first.json.cost_micros, (words.length + 1) * 10);
  const { held_micros, of } = await ledgerOf(server);
  assert.equal(held_micros, 0);
  assert.deepEqual(
    of(id).map((item) => item.kind),
    ['charge', 'release', 'hold'],
  );
  assert.equal(of(id)[0]?.amount_micros, -first.json.cost_micros);
  assert.equal((await server.call(`GET /v1/jobs/${id}`)).text, first.text, 'its worker writes nothing afterwards');
});

test('40: a job that has ended stays as it is when it is cancelled', async (t) => {
  const server = await startServer(t, { seedCredits: true });
  const id = await createJob(server, 'k', 'x');
  const done = await ended(server, id);
  const first = await cancel(server, id);
  assert.deepEqual([first.status, first.json], [200, done]);
  assert.equal((await cancel(server, id)).text, first.text);
});

test('40: of a cancellation and the end of a job at the same moment one comes first, and it is settled once', async (t) => {
  const server = await startServer(t, { seedCredits: true, env: { WORKERS: '8', LLM_SIM_LATENCY_MS: '30' } });
  const ids = await Promise.all(Array.from({ length: 24 }, (_, i) => createJob(server, `k${i}`, 'x')));
  const states = await Promise.all(
    ids.map(async (id, i) => {
      if (i % 2 === 0) await (await openStream(server, id)).until('delta');
      const answers = await Promise.all([cancel(server, id), cancel(server, id)]);
      const { status } = await ended(server, id);
      assert.deepEqual(new Set(answers.map((answer) => answer.json.status)), new Set([status]));
      return status;
    }),
  );
  t.diagnostic(`ends: ${JSON.stringify(states)}`);
  const { held_micros, of } = await ledgerOf(server);
  assert.equal(held_micros, 0);
  for (const id of ids) assert.equal(of(id).filter((item) => item.kind === 'release').length, 1);
});

test('a job that runs in another process is cancelled at once, and its call is hung up within a second', async (t) => {
  const model = slowModel();
  const worker = await startServer(t, { seedCredits: true, provider: model });
  const server = await startServer(t, { env: { WORKERS: '0' }, databaseUrl: worker.databaseUrl });
  const id = await createJob(server, 'k', '[[stall]]');
  await until(() => model.stats().active === 1);
  assert.equal((await cancel(server, id)).json.status, 'cancelled');
  const startedMs = performance.now();
  await until(() => model.stats().active === 0);
  t.diagnostic(`hung up after ${(performance.now() - startedMs).toFixed(0)} ms`);
});

test('where nobody can listen, a cancelled job that says nothing is hung up with the next look at its lease', async (t) => {
  const model = slowModel();
  const worker = await startServer(t, { seedCredits: true, provider: model, env: { DB_PREPARE: 'false' } });
  const id = await createJob(worker, 'k', '[[stall]]');
  await until(() => model.stats().active === 1);
  assert.equal(worker.jobs.isListening(), false);
  await cancel(worker, id);
  const startedMs = performance.now();
  await until(() => model.stats().active === 0);
  const ms = performance.now() - startedMs;
  t.diagnostic(`hung up after ${ms.toFixed(0)} ms`);
  assert.ok(ms < 3_000);
});

test('a cancellation takes no body, and a key where one is sent', async (t) => {
  const server = await startServer(t, { seedCredits: true, env: { WORKERS: '0' } });
  const id = await createJob(server, 'k', 'x');
  const withBody = await server.call(`PUT /v1/jobs/${id}/cancellation`, { body: {} });
  assert.deepEqual([withBody.status, withBody.json.code], [400, 'unexpected_body']);
  const first = await cancel(server, id, 'c');
  const again = await cancel(server, id, 'c');
  assert.equal(first.json.status, 'cancelled');
  assert.equal(again.headers.get('idempotent-replayed'), 'true');
  assert.equal(again.text, first.text);
});
