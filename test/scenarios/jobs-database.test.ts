import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSimulatedProvider } from '../../src/llm/simulated.ts';
import { atEnd } from '../helpers/cleanup.ts';
import { startPrivateServer } from '../helpers/database.ts';
import { createDoc } from '../helpers/docs.ts';
import { createJob, ended, ledgerOf, openStream, textOf } from '../helpers/jobs.ts';
import { startServer } from '../helpers/server.ts';
import { testSql, until } from '../helpers/sql.ts';

test('database sessions that are killed again and again cost a running job neither a call nor a word', async (t) => {
  const model = createSimulatedProvider({ latencyMs: 2_500, tokens: 250 });
  const server = await startServer(t, { seedCredits: true, provider: model, env: { LOG_LEVEL: 'error' } });
  const sql = testSql(t, server.databaseUrl);
  const ids = await Promise.all([1, 2, 3].map((i) => createJob(server, `k${i}`, `x${i}`)));
  const streams = await Promise.all(ids.map((id) => openStream(server, id)));
  await Promise.all(streams.map((stream) => stream.until('delta')));
  let killed = 0;
  while (model.stats().active > 0) {
    const rows = await sql`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'retry-safe'`;
    killed += rows.length;
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
  const histories = await Promise.all(streams.map((stream) => stream.rest()));
  t.diagnostic(`${killed} sessions killed`);
  assert.ok(killed > 5);
  assert.equal(model.stats().calls, 3);
  for (const [i, id] of ids.entries()) {
    const job = await ended(server, id);
    assert.deepEqual([job.status, job.attempts], ['succeeded', 1]);
    assert.equal(textOf(histories[i] ?? []), job.result);
    assert.equal((await ledgerOf(server)).of(id).filter((item) => item.kind === 'charge').length, 1);
  }
});

test('Postgres stopped in the middle of a job and started again: the answer that was paid is kept', async (t) => {
  const postgres = await startPrivateServer();
  atEnd(t, () => postgres.remove());
  const databaseUrl = await postgres.createDatabase();
  const model = createSimulatedProvider({ latencyMs: 1_500, tokens: 100 });
  const server = await startServer(t, { databaseUrl, seedCredits: true, provider: model, env: { LOG_LEVEL: 'error' } });
  const id = await createJob(server, 'k', 'x');
  const stream = await openStream(server, id);
  await stream.until('delta');
  await postgres.stop();
  await until(() => model.stats().active === 0);
  await postgres.start();
  const events = await stream.rest();
  assert.equal(events.at(-1)?.event, 'done', 'the stream itself went on');
  const job = (await server.call(`GET /v1/jobs/${id}`)).json;
  assert.deepEqual([job.status, job.attempts, model.stats().calls], ['succeeded', 1, 1]);
  assert.equal(textOf(events), job.result);
  assert.equal((await ledgerOf(server)).held_micros, 0);
  await until(() => server.jobs.isListening());
  // New work runs as before.
  assert.equal((await ended(server, await createJob(server, 'k2', 'y'))).status, 'succeeded');
});

test('Postgres stopped in the middle of a rewrite and started again: the text that was paid is written, and answered', async (t) => {
  const postgres = await startPrivateServer();
  atEnd(t, () => postgres.remove());
  const databaseUrl = await postgres.createDatabase();
  const model = createSimulatedProvider({ latencyMs: 1_500, tokens: 100 });
  const server = await startServer(t, { databaseUrl, seedCredits: true, provider: model, env: { LOG_LEVEL: 'error' } });
  const tag = await createDoc(server, 'd');
  const request = { key: 'k', body: { instruction: 'x' }, headers: { 'if-match': tag } };
  const writing = server.call('POST /v1/docs/d/rewrite', request);
  await until(() => model.stats().completionTokens > 0);
  await postgres.stop();
  await until(() => model.stats().active === 0);
  await postgres.start();
  const written = await writing;
  assert.deepEqual([written.status, written.json.version], [200, 2]);
  const again = await server.call('POST /v1/docs/d/rewrite', request);
  assert.deepEqual([again.status, again.text], [200, written.text]);
  assert.equal(model.stats().calls, 1);
  const { held_micros, items } = await ledgerOf(server);
  assert.deepEqual([held_micros, items.filter((item) => item.kind === 'charge').length], [0, 1]);
});
