import { parseArgs } from 'node:util';
import { withCache } from '../src/llm/cache.ts';
import type { Provider } from '../src/llm/provider.ts';
import { runModel } from '../src/llm/run.ts';
import { createSimulatedProvider } from '../src/llm/simulated.ts';

const usage = `Usage: npm run demo:cache

Asks a simulated model the same question twice, at temperature 0 and at temperature 1, through the cache of results in the
calling layer, and shows how often the model was called and how many tokens were paid.
`;

function readArguments() {
  try {
    return parseArgs({ options: { help: { type: 'boolean', short: 'h', default: false } } }).values;
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${usage}`);
    process.exit(2);
  }
}

if (readArguments().help) {
  process.stdout.write(usage);
  process.exit(0);
}

let calls = 0;
const model = createSimulatedProvider({ latencyMs: 50, tokens: 20 });
const counting: Provider = {
  name: model.name,
  generate(call) {
    calls += 1;
    return model.generate(call);
  },
};
const cached = withCache(counting, { maxEntries: 100, maxBytes: 1_000_000 });

for (const temperature of [0, 1]) {
  for (const time of ['first', 'second']) {
    const before = calls;
    const run = await runModel(
      cached,
      {
        prompt: 'Name a colour.',
        maxTokens: 20,
        signal: new AbortController().signal,
        idempotencyKey: `${temperature}-${time}`,
        temperature,
        cacheScope: 'acme',
      },
      { timeoutMs: 5_000 },
    );
    const paid = run.usage.promptTokens + run.usage.completionTokens;
    process.stdout.write(`temperature ${temperature}, ${time} time: ${calls - before} calls, ${paid} tokens paid\n`);
  }
}
