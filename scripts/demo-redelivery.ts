import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { parseConfig } from '../src/config.ts';
import { readLedger, seedCredits } from '../src/credits/books.ts';
import { migrate } from '../src/db/migrate.ts';
import type { Database } from '../src/db/pool.ts';
import { createSimulatedProvider } from '../src/llm/simulated.ts';
import { createLog } from '../src/log.ts';
import { type Jobs, startJobs } from '../src/resources/jobs/jobs.ts';
import { isEnded, jobId } from '../src/resources/jobs/row.ts';
import { findJob } from '../src/resources/jobs/store.ts';
import { createPager } from '../src/resources/page.ts';
import { failWith, withDatabase } from './with-database.ts';

const usage = `Usage: npm run demo:redelivery -- [--tenant NAME] [--latency MS]

A queue that promises "at least once" delivers one message three times: before its job runs, while it runs and when it is
done. It is one job and one charge, because the server makes the key that the message lacks: sha256 of tenant, kind and
payload, under a unique constraint.
  --tenant NAME   who pays; default: demo
  --latency MS    what the simulated model takes; default: 800

The database is DATABASE_URL, or an embedded one that is thrown away at the end.
`;

const firstCreditMicros = 1_000_000;
const pollMs = 20;

function readArguments() {
  try {
    const { values } = parseArgs({
      options: {
        tenant: { type: 'string', default: 'demo' },
        latency: { type: 'string', default: '800' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    if (!/^[0-9]{1,5}$/.test(values.latency)) throw new Error('--latency takes milliseconds, up to 99999.');
    return values;
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${usage}`);
    process.exit(2);
  }
}

const say = (line = '') => process.stdout.write(`${line}\n`);

async function demo(db: Database, jobs: Jobs, tenant: string): Promise<void> {
  await seedCredits(db, { [tenant]: firstCreditMicros });
  const payload = { prompt: `Message ${new Date().toISOString()}: summarise the quarterly report.`, max_tokens: 100 };
  say(`One message: ${JSON.stringify(payload)}\n`);
  const deliver = async (when: string) => {
    const { kind, job } = await jobs.enqueueDelivery(tenant, 'generate', payload);
    say(`delivered ${when.padEnd(20)} ${kind.padEnd(10)} ${jobId(job.id)}  ${job.status}`);
    return job;
  };
  const until = async (id: string, isSo: (status: string) => boolean) => {
    for (;;) {
      const job = await findJob(db, tenant, id);
      if (job !== undefined && isSo(job.status)) return job;
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  };
  const { id } = await deliver('first');
  await until(id, (status) => status !== 'queued');
  await deliver('while its job runs');
  const job = await until(id, (status) => isEnded(status as never));
  await deliver('when it is done');

  const { rows } = await readLedger(db, tenant, undefined, 100);
  const entries = rows.filter((row) => row.source_id === jobId(id)).reverse();
  say('\nThe ledger of this job:');
  for (const { kind, amount_micros } of entries) say(`  ${kind.padEnd(8)} ${String(amount_micros).padStart(8)} micros`);
  const charges = entries.filter((row) => row.kind === 'charge').length;
  say(`\n3 deliveries, 1 job (${job.status}), ${job.attempts} call, ${charges} charge.`);
}

const values = readArguments();
if (values.help) {
  process.stdout.write(usage);
  process.exit(0);
}
const dataDir = await mkdtemp(join(tmpdir(), 'retry-safe-demo-'));
// Whoever runs Postgres must get there, too.
await chmod(dataDir, 0o755);
let failure: unknown;
try {
  const config = { ...parseConfig(process.env), dataDir };
  await withDatabase(config, async (db, url) => {
    await migrate(url);
    const jobs = startJobs({
      db,
      listenUrl: config.dbPrepare ? url : undefined,
      provider: createSimulatedProvider({ latencyMs: Number(values.latency), tokens: 40 }),
      pager: createPager(''),
      log: createLog('warn', (line) => process.stderr.write(line)),
      settings: {
        ...config.jobs,
        timeoutMs: config.llm.timeoutMs,
        priceMicrosPerToken: config.llm.priceMicrosPerToken,
        sweepMs: config.idempotency.sweepMs,
      },
    });
    await demo(db, jobs, values.tenant).finally(() => jobs.stop());
  });
} catch (error) {
  failure = error;
} finally {
  await rm(dataDir, { recursive: true, force: true });
}
if (failure !== undefined) failWith(failure);
