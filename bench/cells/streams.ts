import { randomUUID } from 'node:crypto';
import type { Arm, Cell, CellOptions, Check, Measured, Prepared, Variant } from '../cell.ts';
import type { LoadSize } from '../options.ts';
import { openReader } from '../stage/reader.ts';
import { type Stage, tenant } from '../stage/stage.ts';
import { latencyMetrics } from '../statistics/quantiles.ts';
import { longRounds, startMs } from './sizes.ts';

const armNames = ['batched', 'row_per_token'] as const;
type ArmName = (typeof armNames)[number];

const readersOf: Readonly<Record<LoadSize, readonly number[]>> = {
  smoke: [3],
  quick: [1, 100],
  usual: [1, 1_000],
  full: [1, 10, 100, 1_000],
};
/** Jobs that run at the same time; readers spread over them. */
const jobsAtMost = 10;
/** How long the model talks, and how many tokens it says: a fast model of today. */
const talk: Readonly<Record<LoadSize, { readonly llmMs: number; readonly tokens: number }>> = {
  smoke: { llmMs: 200, tokens: 20 },
  quick: { llmMs: 1_000, tokens: 64 },
  usual: { llmMs: 1_000, tokens: 64 },
  full: { llmMs: 3_000, tokens: 200 },
};

/** Readers of running jobs: batches of what the model says against a row for every token. */
export const streams: Cell = {
  name: 'streams',
  title: 'readers of running jobs: what the model says written in batches against a row for every token',
  isUsual: true,
  takes: [],
  variants(options) {
    const { size } = options;
    const rounds = options.rounds ?? longRounds[size];
    const { llmMs, tokens } = talk[size];
    return readersOf[size].map((readers): Variant => {
      const jobs = Math.min(readers, jobsAtMost);
      return {
        cell: 'streams',
        settings: { readers, jobs, tokens, llm_ms: llmMs },
        rounds,
        env: {
          BENCH_MODEL: 'clock',
          LLM_SIM_LATENCY_MS: String(llmMs),
          LLM_SIM_TOKENS: String(tokens),
          RATE_LIMIT_RPM: '1000000',
          RATE_LIMIT_BURST: '1000000',
          // The benchmark starts the workers, the server's own or those of the other arm, when all readers are there.
          WORKERS: '0',
        },
        estimateMs: startMs + (rounds + 0.5) * armNames.length * (llmMs + 400 + readers * 2),
        prepare: (stage) => prepare(stage, options, readers, jobs),
      };
    });
  },
};

async function prepare(stage: Stage, { size }: CellOptions, readers: number, jobs: number): Promise<Prepared> {
  const { tokens } = talk[size];
  const checks: Check[] = [];

  const round = async (name: ArmName, readerCount: number): Promise<Measured> => {
    const paths = await Promise.all(Array.from({ length: jobs }, () => postJob(stage, tokens)));
    const lags: number[] = [];
    const open = await Promise.all(
      Array.from({ length: readerCount }, (_, n) =>
        openReader(`${stage.server.url}${paths[n % jobs]}/events`, stage.headers, (ms) => lags.push(ms)),
      ),
    );
    const startedMs = performance.now();
    await stage.server.ask({ kind: 'workers', writer: name });
    const seen = await Promise.all(open.map((reader) => reader.seen));
    const wallMs = performance.now() - startedMs;
    await stage.server.ask({ kind: 'workers', writer: 'none' });

    const results = await Promise.all(paths.map((path) => resultOf(stage, path)));
    const whole = seen.filter(({ text, end }, n) => end === 'done' && text === results[n % jobs]).length;
    checks.push({ name: 'readers who got the stored result whole', arm: name, expected: readerCount, actual: whole });
    const early = lags.filter((ms) => ms < 0).length;
    checks.push({ name: 'tokens that were read before they were said', arm: name, expected: 0, actual: early });
    return {
      statuses: { 200: readerCount },
      metrics: {
        wall_ms: wallMs,
        requests: jobs,
        event_rows_per_answer: await eventRowsPerJob(stage, paths),
        ...latencyMetrics(
          open.map((reader) => reader.firstByteMs),
          'first_byte.',
        ),
        ...latencyMetrics(lags, 'lag.'),
      },
    };
  };

  const arms = armNames.map(
    (name): Arm => ({
      name,
      async warmUp() {
        if (size !== 'smoke') await round(name, Math.min(readers, 20));
      },
      run: () => round(name, readers),
    }),
  );
  return { arms, check: async () => [...checks, ...(await checkBooks(stage))] };
}

async function postJob(stage: Stage, tokens: number): Promise<string> {
  const { status, headers, text } = await stage.call('POST /v1/jobs', {
    headers: { 'Idempotency-Key': randomUUID() },
    body: { kind: 'generate', prompt: 'What time is it?', max_tokens: tokens },
  });
  const path = headers.get('location');
  if (status !== 202 || path === null) throw new Error(`a job was answered with ${status}: ${text}`);
  return path;
}

async function resultOf(stage: Stage, path: string): Promise<unknown> {
  return (JSON.parse((await stage.call(`GET ${path}`)).text) as { result: unknown }).result;
}

async function eventRowsPerJob(stage: Stage, paths: readonly string[]): Promise<number> {
  const ids = paths.map((path) => path.replace(/^.*job_/, ''));
  const [row] = await stage.database.sql<{ rows: number }[]>`
    select count(*)::int as rows from job_events
    where tenant = ${tenant} and replace(job_id::text, '-', '') in ${stage.database.sql(ids)}`;
  return (row?.rows ?? 0) / paths.length;
}

/** Whatever wrote the events, every job is paid once. */
async function checkBooks(stage: Stage): Promise<Check[]> {
  const [row] = await stage.database.sql<{ jobs: number; succeeded: number; charges: number }[]>`
    select (select count(*) from jobs)::int as jobs,
      (select count(*) from jobs where status = 'succeeded')::int as succeeded,
      (select count(*) from ledger where kind = 'charge')::int as charges`;
  return [
    { name: 'jobs that succeeded = jobs', expected: row?.jobs ?? 0, actual: row?.succeeded ?? -1 },
    { name: 'charges = jobs', expected: row?.jobs ?? 0, actual: row?.charges ?? -1 },
  ];
}
