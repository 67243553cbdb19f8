import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSimulatedProvider } from '../../src/llm/simulated.ts';
import { Problem } from '../../src/protocol/errors.ts';
import { deliveryDigest } from '../../src/resources/jobs/delivery.ts';
import { jobId } from '../../src/resources/jobs/row.ts';
import { ended, ledgerOf } from '../helpers/jobs.ts';
import { startServer } from '../helpers/server.ts';
import { testSql } from '../helpers/sql.ts';

const payload = { prompt: 'Summarise the report.', max_tokens: 50 };
const codeOf = (code: string) => (error: unknown) => error instanceof Problem && error.code === code;

test('what is delivered three times is one job, one call and one charge', async (t) => {
  const model = createSimulatedProvider({ latencyMs: 20, tokens: 20 });
  const server = await startServer(t, { seedCredits: true, provider: model });
  const first = await server.jobs.enqueueDelivery('acme', 'generate', payload);
  // The order of members is the sender's business.
  const second = await server.jobs.enqueueDelivery('acme', 'generate', { max_tokens: 50, prompt: payload.prompt });
  const id = jobId(first.job.id);
  assert.equal((await ended(server, id)).status, 'succeeded');
  const third = await server.jobs.enqueueDelivery('acme', 'generate', payload);
  assert.deepEqual([first.kind, second.kind, third.kind], ['created', 'duplicate', 'duplicate']);
  assert.deepEqual([second.job.id, third.job.id, third.job.status], [first.job.id, first.job.id, 'succeeded']);
  assert.equal(model.stats().calls, 1);
  const { items } = await ledgerOf(server);
  assert.equal(items.filter((item) => item.kind === 'charge').length, 1);
});

test('ten consumers that get one delivery at the same moment make one job', async (t) => {
  const server = await startServer(t, { seedCredits: true, env: { WORKERS: '0' } });
  const delivered = await Promise.all(
    Array.from({ length: 10 }, () => server.jobs.enqueueDelivery('acme', 'generate', payload)),
  );
  assert.equal(delivered.filter(({ kind }) => kind === 'created').length, 1);
  assert.equal(new Set(delivered.map(({ job }) => job.id)).size, 1);
  assert.equal((await ledgerOf(server)).items.filter((item) => item.kind === 'hold').length, 1);
});

test('a delivery for another tenant, or with another payload, is another job', async (t) => {
  const server = await startServer(t, { seedCredits: true, env: { WORKERS: '0' } });
  const deliveries = [
    await server.jobs.enqueueDelivery('acme', 'generate', payload),
    await server.jobs.enqueueDelivery('globex', 'generate', payload),
    await server.jobs.enqueueDelivery('acme', 'generate', { ...payload, max_tokens: 51 }),
  ];
  assert.deepEqual(
    deliveries.map(({ kind }) => kind),
    ['created', 'created', 'created'],
  );
  // The parts cannot run into one another.
  assert.notDeepEqual(deliveryDigest('a', 'bc', 1), deliveryDigest('ab', 'c', 1));
});

test('a delivery without credits is refused and may come again; one that is no job is refused for good', async (t) => {
  const server = await startServer(t, { env: { WORKERS: '0' } });
  await assert.rejects(server.jobs.enqueueDelivery('acme', 'generate', payload), codeOf('insufficient_credits'));
  await assert.rejects(server.jobs.enqueueDelivery('acme', 'generate', { prompt: '' }), codeOf('invalid_body'));
  const [count] = await testSql(t, server.databaseUrl)`select count(*)::int as n from jobs`;
  assert.equal(count?.n, 0);
});
