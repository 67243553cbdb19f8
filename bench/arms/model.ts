import type { WriteContext } from '../../src/handler.ts';
import { deriveCallKey } from '../../src/llm/call-key.ts';
import type { Provider } from '../../src/llm/provider.ts';
import { runModel } from '../../src/llm/run.ts';
import { problem } from '../../src/protocol/errors.ts';

/** Tokens an arm's answer may have; the simulated model stops long before. */
const maxTokens = 512;
/** Longer than any model of a benchmark. Milliseconds. */
const timeoutMs = 120_000;

/** What the model makes of a text, by the same provider and the same call as `…/rewrite`. */
export async function askModel(provider: Provider, ctx: WriteContext, instruction: string, body: string) {
  const run = await runModel(
    provider,
    {
      prompt: `${instruction}\n\n${body}`,
      maxTokens,
      signal: ctx.signal,
      idempotencyKey: deriveCallKey({ tenant: ctx.tenant, key: ctx.key ?? '', step: 'bench' }),
    },
    { timeoutMs },
  );
  if (run.kind !== 'answered') throw problem('upstream_failed', { cause: run.kind });
  return run.text;
}
