import { createWriteStream, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Variant } from './cell.ts';
import { cells } from './cells/index.ts';
import { readEnvironment } from './environment.ts';
import { formatLine } from './lines.ts';
import { parseOptions } from './options.ts';
import { startProgress } from './progress.ts';
import { groupsOf, runVariants } from './run-variants.ts';
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

const groups = groupsOf(
  cells.filter((cell) => options.cells.includes(cell.name)).flatMap((cell) => [...cell.variants(options)]),
);

/** Making and starting the database server. Milliseconds. */
const clusterEstimateMs = 3_000;

async function measure(): Promise<void> {
  const progress = startProgress(
    [
      { name: 'database', estimateMs: clusterEstimateMs },
      ...groups.map((group) => ({
        name: nameOf(group),
        estimateMs: group.reduce((sum, { estimateMs }) => sum + estimateMs, 0),
      })),
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
      for (const group of groups) {
        stopping.signal.throwIfAborted();
        progress.done();
        await runVariants(group, {
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

/** The cell with its settings; where those of several differ, with the values of all. */
function nameOf(group: readonly [Variant, ...Variant[]]): string {
  const [{ cell, settings }] = group;
  const parts = Object.keys(settings).map((name) => {
    const values = new Set(group.map((variant) => variant.settings[name]));
    return `${name.replaceAll('_', ' ')} ${[...values].join(' and ')}`;
  });
  return `${cell} ${parts.join(', ')}`;
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
