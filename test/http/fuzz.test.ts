import assert from 'node:assert/strict';
import test from 'node:test';
import { fuzz } from '../helpers/fuzz.ts';
import { startServer, testToken } from '../helpers/server.ts';

test('a thousand random requests made from the contract end in no 500 and no hang, and the server still serves', async (t) => {
  const seed = Date.now() % 1_000_000;
  t.diagnostic(`seed ${seed}`);
  const server = await startServer(t, { seedCredits: true, env: { LLM_SIM_LATENCY_MS: '5', LLM_SIM_TOKENS: '2' } });
  const report = await fuzz(server.url, await testToken({ scope: 'credits:write' }), { runs: 1_000, seed });
  t.diagnostic(JSON.stringify(report.counts));
  assert.deepEqual(report.faults, [], `seed ${seed}`);
  // The requests do get past the door: a fuzz that only meets 400 tries nothing.
  for (const status of ['200', '201', '400', '404', '422', '428'])
    assert.ok((report.counts[status] ?? 0) > 0, `${status} was seen`);
  assert.equal((await server.call('GET /v1/orders')).status, 200);
});
