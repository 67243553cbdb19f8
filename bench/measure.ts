import { createWriteStream, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { cells } from './cells/index.ts';
import { readEnvironment } from './environment.ts';
import { formatLine } from './lines.ts';
import { parseOptions } from './options.ts';
import { startProgress } from './progress.ts';
import { runVariant } from './run-variant.ts';
import { bundleProgram } from './stage/bundle.ts';
import { openCluster } from './stage/cluster.ts';
import { serverEntry } from './stage/server-process.ts';

/*
 * The first of three programs: runs the cells and writes raw lines (NDJSON) to the file RAW_LINES names, or to standard
 * output. `summarise.ts` makes statistics of them, `report.ts` a report.
 */

const command = parseOptions(process.argv.slice(2), cells);
if (command.kind !== 'run') {
  process.stderr.write(
    `${command.kind === 'refused' ? command.sentence : 'Only cells and their options are taken.'}\n`,
  );
  process.exit(2);
}
const { options } = command;

// Ctrl-C reaches this process, the one that started it and the server under test; the channel tells of a parent that is gone.
const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stopping.abort(signal));
process.on('disconnect', () => stopping.abort('SIGHUP'));

const rawFile = process.env.RAW_LINES;
if (rawFile !== undefined) mkdirSync(dirname(rawFile), { recursive: true });
const out = rawFile === undefined ? process.stdout : createWriteStream(rawFile);

const variants = cells
  .filter((cell) => options.cells.includes(cell.name))
  .flatMap((cell) => [...cell.variants(options)]);

/** Making and starting the database server. Milliseconds. */
const clusterEstimateMs = 3_000;

async function measure(): Promise<void> {
  const progress = startProgress(
    [
      { name: 'database', estimateMs: clusterEstimateMs },
      ...variants.map(({ cell, settings, estimateMs }) => ({ name: nameOf(cell, settings), estimateMs })),
    ],
    process.stderr,
  );
  try {
    const cluster = await openCluster(process.env.DATABASE_URL, process.env.DATA_DIR ?? '.data');
    // A fresh server starts for every comparison: as one file it does so in a third of the time.
    const folder = mkdtempSync(join(tmpdir(), 'retry-safe-bench-'));
    try {
      const program = await bundleProgram(serverEntry, folder);
      const environment = await readEnvironment(cluster.sql, cluster.kind);
      for (const variant of variants) {
        stopping.signal.throwIfAborted();
        progress.done();
        await runVariant(variant, {
          cluster,
          program,
          environment,
          signal: stopping.signal,
          onLine: (line) => void out.write(formatLine(line)),
          onPart: progress.say,
        });
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
      await cluster.stop();
    }
  } finally {
    progress.end();
  }
}

function nameOf(cell: string, settings: Readonly<Record<string, number | string>>): string {
  return `${cell} ${Object.entries(settings)
    .map(([name, value]) => `${name.replaceAll('_', ' ')} ${value}`)
    .join(', ')}`;
}

let code = 0;
try {
  await measure();
} catch (error) {
  code = stopping.signal.aborted ? 130 : 1;
  if (!stopping.signal.aborted) process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
}
if (out === process.stdout) process.exitCode = code;
else out.end(() => process.exit(code));
if (process.connected) process.disconnect();
