import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClient, type JobEvent } from '../../src/client/index.ts';
import { startFaultProxy } from '../helpers/fault-proxy.ts';
import { startServer, testToken } from '../helpers/server.ts';

test('a job asked for and followed through a network that cuts everything is done once, and its text is whole', async (t) => {
  const server = await startServer(t, { env: { LLM_SIM_LATENCY_MS: '400', LLM_SIM_TOKENS: '300' } });
  const proxy = await startFaultProxy(t, server.url);
  const token = await testToken({ scope: 'credits:write' });
  const client = createClient({
    baseUrl: proxy.url,
    token,
    patience: { backOffMs: 5, maxBackOffMs: 20 },
    random: () => 0.05,
  });
  await client.call('addCredits', { body: { amount_micros: 1_000_000_000 } });

  proxy.next({ kind: 'drop_answer' }, { kind: 'cut_answer', bodyBytes: 10 });
  const { body: job } = await client.call('createJob', {
    body: { kind: 'generate', prompt: 'Tell me.', max_tokens: 300 },
  });
  let bytes = 60;
  proxy.decide((line) => {
    bytes += 60;
    return line.includes('/events') && bytes < 600 ? { kind: 'cut_answer', bodyBytes: bytes } : { kind: 'pass' };
  });
  const events: JobEvent[] = [];
  for await (const event of client.jobEvents(job.job_id)) events.push(event);

  assert.equal(events.at(-1)?.type, 'done');
  events.forEach((event, i) => {
    assert.equal(event.seq, i + 1);
  });
  const connections = proxy.passages.filter(({ line }) => line.includes('/events'));
  assert.ok(connections.length > 4, `the stream came over ${connections.length} connections`);
  const text = events.map((event) => (event.type === 'delta' ? event.text : '')).join('');
  const { body: ended } = await client.call('getJob', { params: { id: job.job_id } });
  assert.equal(ended.status, 'succeeded');
  assert.equal(text, ended.result);
  assert.equal((await client.call('listJobs')).body.items.length, 1);
  const { body: ledger } = await client.call('listLedger', { query: { limit: 100 } });
  assert.equal(ledger.items.filter(({ kind }) => kind === 'charge').length, 1);
});
