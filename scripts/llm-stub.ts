import { parseArgs } from 'node:util';
import { type LlmStub, readDirective, type StubOptions, startLlmStub } from './llm-stub/server.ts';

const HELP = `A model provider to try things with: OpenAI's chat completions, which cost nothing and fail on demand.

  npm run -s llm-stub -- [options]
  LLM_BASE_URL=http://127.0.0.1:4010/v1 npm start        (in another terminal)

  --port N          port, 0 for a free one                      (4010)
  --host ADDRESS    address to listen on                        (127.0.0.1)
  --latency MS      from the call to the last token             (1000)
  --tokens N        tokens an answer                            (64)
  --do DIRECTIVE    for every call, such as --do cut:10; may be repeated
  --fail-rate P     so many of the calls fail in some way, 0-1  (0)
  --seed N          draws the failures                          (1)
  --dedupe          honour Idempotency-Key: the same key is answered again and paid once
  --api-key KEY     refuse every other key
  --quiet           no line for each call
  --help            this text

  GET  /stats       calls and tokens, in all and by Idempotency-Key
  POST /reset       counts from zero
  POST /script      directives for the next calls: ["fail:429:1", "cut:10", "ok"]

Directives also stand in a prompt, as [[fail:500]]. Those there are:
  fail:STATUS[:RETRY_AFTER_S]  refused  stall  stall-after:N  cut[:N]  error[:N]  ok
  slow:MS  first:MS  tokens:N  text:nul|surrogate|emoji|crlf|html  text:long:N  echo  no-usage
In a prompt, a failure can be bounded: [[fail:500 times=2]] fails the first two calls with one Idempotency-Key.
`;

/** Wrong use of the command line, as a sentence. */
class UsageError extends Error {}

function readOptions(): StubOptions | 'help' {
  const { values } = parseArgs({
    options: {
      port: { type: 'string', default: '4010' },
      host: { type: 'string', default: '127.0.0.1' },
      latency: { type: 'string', default: '1000' },
      tokens: { type: 'string', default: '64' },
      do: { type: 'string', multiple: true, default: [] },
      'fail-rate': { type: 'string', default: '0' },
      seed: { type: 'string', default: '1' },
      dedupe: { type: 'boolean', default: false },
      'api-key': { type: 'string' },
      quiet: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return 'help';
  return {
    host: values.host,
    port: integer('port', values.port, 0, 65_535),
    latencyMs: integer('latency', values.latency, 0, 3_600_000),
    tokens: integer('tokens', values.tokens, 1, 100_000),
    directives: values.do.map(readDirective).join(''),
    failRate: fraction('fail-rate', values['fail-rate']),
    seed: integer('seed', values.seed, 0, 2 ** 32 - 1),
    dedupe: values.dedupe,
    apiKey: values['api-key'],
    onEnd: values.quiet ? () => {} : (line) => console.log(line),
  };
}

function integer(name: string, text: string, min: number, max: number): number {
  const value = /^[0-9]{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new UsageError(`--${name} takes a whole number from ${min} to ${max}, not "${text}".`);
}

function fraction(name: string, text: string): number {
  const value = /^(0|1|0?\.[0-9]+|1\.0+)$/.test(text) ? Number(text) : Number.NaN;
  if (value >= 0 && value <= 1) return value;
  throw new UsageError(`--${name} takes a number from 0 to 1, not "${text}".`);
}

function fail(exitCode: number, message: string): never {
  console.error(message);
  process.exit(exitCode);
}

async function main(): Promise<void> {
  let options: StubOptions | 'help';
  try {
    options = readOptions();
  } catch (error) {
    return fail(2, `${(error as Error).message}\nTry --help.`);
  }
  if (options === 'help') return void process.stdout.write(HELP);
  let stub: LlmStub;
  try {
    stub = await startLlmStub(options);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === 'EADDRINUSE' ? 'the port is taken' : String(error);
    return fail(1, `The stub cannot listen on ${options.host}:${options.port}: ${why}.`);
  }
  console.log(`The stub listens: LLM_BASE_URL=${stub.url}`);
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => void stub.close());
}

await main();
