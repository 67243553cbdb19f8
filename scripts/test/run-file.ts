import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type BundledTests, reporterFile } from './bundle-tests.ts';
import type { TestEvent } from './events.ts';

/** What became of a test file. `crash`: it ended badly without a test to blame. */
export type FileResult = {
  readonly file: string;
  readonly events: readonly TestEvent[];
  readonly crash: string | undefined;
  /** What it wrote. */
  readonly output: string;
  readonly ms: number;
};

/**
 * Runs one test file, from its bundle, in a process group of its own and ends what it leaves behind. An aborted signal or the time
 * limit kills it.
 */
export async function runFile(
  file: string,
  { pathOf }: BundledTests,
  options: { env: NodeJS.ProcessEnv; limitMs: number; signal: AbortSignal },
): Promise<FileResult> {
  const began = performance.now();
  const eventFile = join(tmpdir(), `retry-safe-test-${process.pid}-${file.replaceAll(/[^a-z0-9]/gi, '-')}.ndjson`);
  const reporting = [
    '--test-reporter',
    pathToFileURL(pathOf(reporterFile)).href,
    '--test-reporter-destination',
    eventFile,
  ];
  const child = spawn(process.execPath, ['--enable-source-maps', ...reporting, pathOf(file)], {
    env: options.env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const chunks: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  const killGroup = (signal: NodeJS.Signals) => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, signal);
    } catch {
      // Nobody left.
    }
  };
  const abort = () => killGroup('SIGKILL');
  options.signal.addEventListener('abort', abort);
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    killGroup('SIGKILL');
  }, options.limitMs);
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  clearTimeout(timer);
  options.signal.removeEventListener('abort', abort);
  killGroup('SIGKILL');
  if (!child.stdout.closed || !child.stderr.closed) await once(child, 'close');

  const all = readEvents(eventFile);
  rmSync(eventFile, { force: true });
  const events = all.filter((event) => event.outcome !== 'noted');
  const isBlamed = events.some((event) => event.outcome === 'failed');
  const crash = isLate
    ? `was still running after ${options.limitMs / 1000} s`
    : code !== 0 && !isBlamed
      ? [`ended with ${signal ?? `exit code ${code}`}`, ...all.map((e) => (e.outcome === 'noted' ? e.reason : ''))]
          .filter((text) => text !== '')
          .join('\n    ')
      : events.length === 0
        ? 'has no tests'
        : undefined;
  return { file, events, crash, output: Buffer.concat(chunks).toString('utf8'), ms: performance.now() - began };
}

function readEvents(file: string): TestEvent[] {
  try {
    const lines = readFileSync(file, 'utf8').split('\n');
    return lines.filter((line) => line.endsWith('}')).map((line) => JSON.parse(line) as TestEvent);
  } catch {
    return [];
  }
}
