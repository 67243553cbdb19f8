import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { readOrigin } from '../test/scenarios/chaos/origin.ts';
import { type KeptRun, reliabilityPage } from '../test/scenarios/chaos/page.ts';
import { faultKinds, figuresOf, storyOf, summaryOf } from '../test/scenarios/chaos/report.ts';
import { runChaos } from '../test/scenarios/chaos/run.ts';

const usage = `Usage: npm run chaos -- [options]

Two server processes on one Postgres, clients that retry, and everything broken at random. A checker that knows only the
clients' log and the final database says what was lost or done twice. Exit code 1 when anything was.

  --minutes N       how long things break (default 1; fractions are fine)
  --seed S          a whole number; the same seed makes the same intents and faults (default: a random one)
  --clients N       clients at a time (default 8)
  --faults a,b      these kinds alone
  --write DIR       also write DIR/reliability.md and DIR/reliability.json (docs)
  --json            figures and violations as JSON on standard output
  --help

Faults:
${Object.entries(faultKinds)
  .map(([kind, what]) => `  ${kind.padEnd(27)} ${what}\n`)
  .join('')}`;

/** Violations whose history is printed. */
const maxStories = 10;

process.exitCode = await main();

async function main(): Promise<number> {
  const options = readArguments();
  if (typeof options === 'string') {
    process.stderr.write(`${options}\n`);
    return 2;
  }
  if (options.help) {
    process.stdout.write(usage);
    return 0;
  }
  const { minutes, seed, faults, json, clients } = options;
  const ending = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => ending.abort());
  process.stderr.write(`seed ${seed}\n`);
  try {
    const result = await runChaos({
      seed,
      clients,
      stormMs: minutes * 60_000,
      signal: ending.signal,
      onProgress: (sentence) => process.stderr.write(`  ${sentence}\n`),
      ...(faults && { isWanted: (kind: string) => faults.includes(kind) }),
    });
    const figures = figuresOf(result, seed, minutes);
    if (json) process.stdout.write(`${JSON.stringify({ figures, violations: result.violations }, null, 2)}\n`);
    else process.stdout.write(summaryOf(figures));
    if (options.write !== undefined) writePages(options.write, { origin: readOrigin(result.postgres), figures });
    for (const violation of result.violations.slice(0, maxStories)) process.stderr.write(storyOf(violation, result));
    return result.violations.length > 0 ? 1 : 0;
  } catch (error) {
    if (!ending.signal.aborted) throw error;
    process.stderr.write('interrupted\n');
    return 130;
  }
}

function writePages(folder: string, run: KeptRun): void {
  writeFileSync(join(folder, 'reliability.json'), `${JSON.stringify(run, null, 2)}\n`);
  writeFileSync(join(folder, 'reliability.md'), reliabilityPage(run));
}

function readArguments() {
  try {
    const { values } = parseArgs({
      options: {
        minutes: { type: 'string', default: '1' },
        seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
        clients: { type: 'string', default: '8' },
        faults: { type: 'string' },
        write: { type: 'string' },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    const [minutes, seed, clients] = [values.minutes, values.seed, values.clients].map(Number) as [
      number,
      number,
      number,
    ];
    if (!(minutes > 0)) return `--minutes takes a number above 0, not ${values.minutes}`;
    if (!Number.isInteger(seed)) return `--seed takes a whole number, not ${values.seed}`;
    if (!(Number.isInteger(clients) && clients > 0))
      return `--clients takes a whole number above 0, not ${values.clients}`;
    const faults = values.faults?.split(',').map((name) => name.trim());
    const unknown = faults?.find((name) => !(name in faultKinds));
    if (unknown !== undefined) return `--faults: there is no ${unknown}; --help lists them`;
    return { ...values, minutes, seed, clients, faults };
  } catch (error) {
    return (error as Error).message;
  }
}
