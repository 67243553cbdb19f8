import { readdirSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { startEmbedded } from '../src/db/embedded.ts';
import { createTemplate, sharedServerVariable, temporaryFolder } from '../test/helpers/database.ts';
import { type BundledTests, bundleTests } from './test/bundle-tests.ts';
import { type FileResult, runFile } from './test/run-file.ts';

const help = `Runs the tests, each file in a process of its own, on one embedded Postgres.

  npm test                         checks and all tests
  npm run test:only -- [PART...]   tests alone: the files whose path holds one of the parts

  --concurrency N   files at a time (default: one more than there are cores, for many wait)
  --limit SECONDS   for one file (default 180)
  --verbose         also what passing tests and files say
`;

/** Seconds of silence after which the files that are running are named. */
const silenceSeconds = 10;

const { values, positionals } = readArguments();
const files = testFiles().filter((file) => positionals.length === 0 || positionals.some((part) => file.includes(part)));
if (files.length === 0) fail(`there is no test file for ${positionals.join(' ') || 'test/**/*.test.ts'}`);
process.exitCode = await run(files);

function readArguments() {
  const options = {
    help: { type: 'boolean', short: 'h' },
    concurrency: { type: 'string', default: String(availableParallelism() + 1) },
    limit: { type: 'string', default: '180' },
    verbose: { type: 'boolean', default: false },
  } as const;
  try {
    const parsed = parseArgs({ options, allowPositionals: true });
    if (parsed.values.help) {
      process.stdout.write(help);
      process.exit(0);
    }
    for (const name of ['concurrency', 'limit'] as const) {
      if (!/^[1-9]\d{0,5}$/.test(parsed.values[name]))
        fail(`--${name} takes a whole number from 1: ${parsed.values[name]}`);
    }
    return parsed;
  } catch (error) {
    fail((error as Error).message);
  }
}

function fail(sentence: string): never {
  process.stderr.write(`${sentence}\n`);
  process.exit(2);
}

/** The longest first: nothing should be left to wait for at the end. */
function testFiles(): string[] {
  const all = readdirSync('test', { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.test.ts'))
    .map((entry) => relative('.', join(entry.parentPath ?? entry.path, entry.name)))
    .sort();
  const isLong = (file: string) => /scenarios|db.(embedded|faults)/.test(file);
  return [...all.filter(isLong), ...all.filter((file) => !isLong(file))];
}

async function run(queue: readonly string[]): Promise<number> {
  const stopping = new AbortController();
  const onSignal = () => stopping.abort();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, onSignal);

  // All that the tests put into the temporary folder goes with it, also what a killed one could not remove.
  const folder = temporaryFolder();
  const server = await startEmbedded({ dataDir: join(folder, 'server'), fsync: false });
  const results: FileResult[] = [];
  let bundles: BundledTests | undefined;
  try {
    const bundled = await bundleTests(queue);
    bundles = bundled;
    await createTemplate(server.url);
    const env = { ...process.env, [sharedServerVariable]: server.url, TMPDIR: folder };
    await inParallel(queue, Number(values.concurrency), stopping.signal, async (file) => {
      const result = await runFile(file, bundled, {
        env,
        limitMs: Number(values.limit) * 1000,
        signal: stopping.signal,
      });
      if (stopping.signal.aborted) return;
      results.push(result);
      process.stdout.write(fileReport(result, results.length, queue.length));
    });
  } finally {
    bundles?.remove();
    await server.stop();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
  if (stopping.signal.aborted) process.stdout.write('interrupted\n');
  process.stdout.write(summary(results));
  if (stopping.signal.aborted) return 130;
  return results.some((result) => failuresOf(result) > 0) ? 1 : 0;
}

/** Works through the queue, `width` at a time; names what is running when nothing has ended for a while. */
async function inParallel(
  queue: readonly string[],
  width: number,
  signal: AbortSignal,
  work: (file: string) => Promise<void>,
): Promise<void> {
  const running = new Set<string>();
  const say = () => process.stdout.write(`  … running: ${[...running].join(', ')}\n`);
  let silence = setInterval(say, silenceSeconds * 1000);
  const rest = queue.values();
  const worker = async () => {
    for (const file of rest) {
      if (signal.aborted) return;
      running.add(file);
      await work(file);
      running.delete(file);
      clearInterval(silence);
      silence = setInterval(say, silenceSeconds * 1000);
    }
  };
  await Promise.all(Array.from({ length: width }, worker));
  clearInterval(silence);
}

function failuresOf(result: FileResult): number {
  return result.events.filter((event) => event.outcome === 'failed').length + (result.crash === undefined ? 0 : 1);
}

function fileReport(result: FileResult, done: number, all: number): string {
  const mark = failuresOf(result) > 0 ? 'FAIL' : 'ok  ';
  const count = `${result.events.length} tests, ${(result.ms / 1000).toFixed(1)} s`;
  const lines = [`${mark} ${result.file} (${count}) ${done}/${all}`];
  for (const event of result.events) {
    if (event.outcome === 'failed') lines.push(`\n  ✗ ${event.title}`, indent(event.reason), '');
    if (event.outcome === 'skipped') lines.push(`  - skipped: ${event.title}: ${event.reason}`);
    if (event.outcome === 'passed' && values.verbose) lines.push(`  ✓ ${event.title} (${Math.round(event.ms)} ms)`);
  }
  if (result.crash !== undefined) lines.push(`\n  ✗ ${result.file} ${result.crash}`);
  const isHeard = values.verbose || failuresOf(result) > 0;
  if (isHeard && result.output.trim() !== '') lines.push('    it wrote:', indent(result.output.trimEnd()), '');
  return `${lines.join('\n')}\n`;
}

function summary(results: readonly FileResult[]): string {
  const of = (outcome: string) => results.flatMap((r) => r.events).filter((e) => e.outcome === outcome).length;
  const failed = results.reduce((sum, result) => sum + failuresOf(result), 0);
  const failedFiles = results.filter((result) => failuresOf(result) > 0).map((result) => `  FAIL ${result.file}\n`);
  return `${failedFiles.join('')}${of('passed')} passed, ${failed} failed, ${of('skipped')} skipped\n`;
}

function indent(text: string): string {
  return text.replaceAll(/^/gm, '    ');
}
