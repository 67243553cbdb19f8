import { startLlmStub } from '../../scripts/llm-stub/server.ts';
import { createOpenAiProvider } from '../../src/llm/openai.ts';
import { atEnd } from '../helpers/cleanup.ts';
import { LATENCY_MS, TOKENS, testProvider } from './provider-contract.ts';

testProvider('openai', async (t) => {
  const stub = await startLlmStub({ latencyMs: LATENCY_MS, tokens: TOKENS });
  atEnd(t, stub.close);
  return {
    provider: createOpenAiProvider({ baseUrl: stub.url, model: 'stub' }),
    calls: () => stub.stats().calls,
    idle: async () => void (await stub.until(({ active }) => active === 0)),
  };
});
