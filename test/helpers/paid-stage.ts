import { type LlmStub, startLlmStub } from '../../scripts/llm-stub/server.ts';
import { atEnd } from './cleanup.ts';
import { freshDatabase, type startProcess } from './server.ts';

/** The lease of a job and of a key. Milliseconds. */
export const leaseMs = 1_000;

/** A database, a provider that counts, and the variables by which processes share them. */
export async function openPaidStage(t: Parameters<typeof startProcess>[0], latencyMs: number) {
  const stub: LlmStub = await startLlmStub({ latencyMs, tokens: 40 });
  atEnd(t, stub.close);
  const databaseUrl = await freshDatabase(t);
  const env = {
    DATABASE_URL: databaseUrl,
    LLM_BASE_URL: stub.url,
    JOB_LEASE_MS: String(leaseMs),
    IDEMPOTENCY_LEASE_MS: String(leaseMs),
    DB_POOL_MAX: '5',
  };
  return { stub, databaseUrl, env };
}
