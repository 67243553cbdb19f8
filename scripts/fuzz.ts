import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import postgres from 'postgres';
import type { FuzzRun } from '../bench/report/fuzz.ts';
import { signToken } from '../src/auth/tokens.ts';
import { parseConfig } from '../src/config.ts';
import { startEmbedded } from '../src/db/embedded.ts';
import { migrate } from '../src/db/migrate.ts';
import { createLog } from '../src/log.ts';
import { serve } from '../src/serve.ts';
import { fuzz } from '../test/helpers/fuzz.ts';
import { readOrigin } from '../test/scenarios/chaos/origin.ts';

const usage = `Usage: npm run fuzz [-- --runs N] [--seed S] [--write DIR]

Sends random requests made from the contract to a server on a database of its own; none may end in a 500 or hang.
  --runs N    how many; default: 100000
  --seed S    the same seed sends the same requests; default: a random one, printed
  --write DIR also write DIR/results/fuzz.json, and DIR/results.md anew (docs)
`;

function readArguments() {
  try {
    const { values } = parseArgs({
      options: {
        runs: { type: 'string', default: '100000' },
        seed: { type: 'string', default: String(Date.now() % 1_000_000) },
        write: { type: 'string' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    if (!/^[1-9][0-9]{0,7}$/.test(values.runs)) throw new Error('--runs takes a whole number from 1.');
    if (!/^[0-9]{1,9}$/.test(values.seed)) throw new Error('--seed takes a whole number.');
    return values;
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${usage}`);
    process.exit(2);
  }
}

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
/** What is in use when all garbage is gone, in megabytes. */
function heapMb(): number {
  collect();
  return process.memoryUsage().heapUsed / 1e6;
}

const options = readArguments();
if (options.help) {
  process.stdout.write(usage);
  process.exit(0);
}
const runs = Number(options.runs);
const seed = Number(options.seed);
const secret = 'a secret for a server that lives as long as this script';

const dataDir = await mkdtemp(join(tmpdir(), 'retry-safe-fuzz-'));
const database = await startEmbedded({ dataDir, fsync: false });
const close = async () => {
  await database.stop();
  await rm(dataDir, { recursive: true, force: true });
};
process.once('SIGINT', () => void close().finally(() => process.exit(130)));
await migrate(database.url);
const faults: string[] = [];
const serving = await serve({
  config: parseConfig({ PORT: '0', LLM_SIM_LATENCY_MS: '5', LLM_SIM_TOKENS: '2', RATE_LIMIT_RPM: '1000000' }),
  databaseUrl: database.url,
  auth: { secret },
  log: createLog('error', (line) => faults.push(line)),
  seedCredits: { acme: 1_000_000_000 },
});
const token = await signToken(secret, { tenant: 'acme', sub: 'alice', scope: 'credits:write' }, 86_400);

process.stdout.write(`seed ${seed}\n`);
let earlyMb = heapMb();
let isEarly = true;
const startedMs = performance.now();
const report = await fuzz(serving.url, token, {
  runs,
  seed,
  onProgress(done) {
    if (isEarly && done >= runs / 10) {
      isEarly = false;
      earlyMb = heapMb();
    }
    const leftS = ((performance.now() - startedMs) / 1_000 / Math.max(done, 1)) * (runs - done);
    process.stdout.write(`\r${done} of ${runs}, about ${Math.ceil(leftS)} s left   `);
  },
});
const asked = postgres(database.url, { max: 1 });
const [{ version = '' } = {}] = await asked`select split_part(current_setting('server_version'), ' ', 1) as version`;
await asked.end();
const run: FuzzRun = {
  origin: readOrigin(version, ['scripts/fuzz.ts', 'test/helpers/fuzz.ts']),
  runs,
  seed,
  counts: report.counts,
  faults: report.faults.length,
  slowest_ms: report.slowestMs,
  heap_mb: { early: earlyMb, end: heapMb() },
};
process.stdout.write(`\n${JSON.stringify(run)}\n`);
for (const request of report.faults.slice(0, 5)) process.stdout.write(`${JSON.stringify(request)}\n`);
for (const line of faults.slice(0, 5)) process.stdout.write(line);
await serving.stop();
await close();
if (options.write !== undefined) {
  const folder = join(options.write, 'results');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'fuzz.json'), `${JSON.stringify(run, null, 1)}\n`);
  const args = ['bench/report.ts', join(folder, 'statistics.json'), '--out', options.write];
  const { status } = spawnSync(process.execPath, ['--import', 'tsx', ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (status !== 0) process.stderr.write('results.md was not written anew\n');
}
process.exit(report.faults.length > 0 ? 1 : 0);
