import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { cells } from './cells/index.ts';
import { parseOptions, type RunOptions, usage } from './options.ts';

/*
 * `npm run bench`: measure.ts → raw lines → summarise.ts → statistics → report.ts, each a program of its own.
 */

const argv = process.argv.slice(2);
const command = parseOptions(argv, cells);

switch (command.kind) {
  case 'help':
    process.stdout.write(usage);
    break;
  case 'list':
    process.stdout.write(list());
    break;
  case 'refused':
    process.stderr.write(`${command.sentence}\n`);
    process.exitCode = 2;
    break;
  case 'run':
    process.exitCode = await run(command.options);
}

function list(): string {
  const width = Math.max(...cells.map(({ name }) => name.length));
  const rarely = ' (only by name, with --quick or --full)';
  return cells.map(({ name, title, isUsual }) => `${name.padEnd(width)}  ${title}${isUsual ? '' : rarely}\n`).join('');
}

/** Runs the three programs; answers the exit code: 1 for a failed check or a fault, 130 after Ctrl-C. */
async function run(options: RunOptions): Promise<number> {
  // Told now and not after all is measured.
  if (options.out !== undefined) {
    try {
      mkdirSync(options.out, { recursive: true });
    } catch (error) {
      process.stderr.write(`--out: ${options.out} can't be made: ${(error as NodeJS.ErrnoException).code}.\n`);
      return 2;
    }
  }
  let interrupted = false;
  let running: ChildProcess | undefined;
  // Ctrl-C reaches the child by itself; the other signals, and a Ctrl-C that was sent to this process alone, do not.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      interrupted = true;
      running?.kill('SIGTERM');
    });
  }
  const folder = mkdtempSync(join(tmpdir(), 'retry-safe-bench-'));
  const raw = join(folder, 'raw.ndjson');
  const statistics = join(folder, 'statistics.json');
  try {
    running = start('measure.ts', argv, { RAW_LINES: raw }, 'inherit');
    const measured = await exitCode(running);
    if (interrupted || measured === 130) return 130;
    running = start('summarise.ts', [raw], {}, 'pipe');
    const [summarised] = await Promise.all([
      exitCode(running),
      pipeline(running.stdout as NodeJS.ReadableStream, createWriteStream(statistics)),
    ]);
    if (summarised !== 0) return interrupted ? 130 : 1;
    const out = options.out === undefined ? [] : ['--out', options.out];
    running = start(
      'report.ts',
      [statistics, '--raw', raw, ...out, ...(options.json ? ['--json'] : [])],
      {},
      'inherit',
    );
    const reported = await exitCode(running);
    return interrupted ? 130 : Math.max(measured, reported);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function start(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  stdout: 'inherit' | 'pipe',
): ChildProcess {
  const file = fileURLToPath(new URL(program, import.meta.url));
  return spawn(process.execPath, ['--import', 'tsx', file, ...args], {
    env: { ...process.env, ...env },
    // The channel lets the child notice that this process is gone.
    stdio: ['ignore', stdout, 'inherit', 'ipc'],
  });
}

async function exitCode(child: ChildProcess): Promise<number> {
  const [code] = (await once(child, 'exit')) as [number | null];
  return code ?? 1;
}
