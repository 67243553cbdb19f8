import { randomUUID } from 'node:crypto';
import type { Arm, Cell, CellOptions, Check, Prepared, Variant } from '../cell.ts';
import type { LoadSize } from '../options.ts';
import { firstTag, insertDocs, sumVersions } from '../stage/documents.ts';
import { fire } from '../stage/fire.ts';
import { startProbe } from '../stage/probe.ts';
import type { Stage } from '../stage/stage.ts';
import { modelEnv } from './model-env.ts';
import { longRounds, startMs } from './sizes.ts';

/** One point of the comparison: so many writers, each with a document of its own. */
type Point = {
  readonly writers: number;
  readonly pool: number;
  readonly llmMs: number;
  readonly withRowLock: boolean;
  /** Volleys that warm an arm up. */
  readonly warmUps: number;
};

/** The chapter's setting. */
const chapter = { writers: 40, pool: 5, llmMs: 1_000 };
const sweep: Readonly<Record<LoadSize, readonly number[]>> = {
  smoke: [],
  quick: [5, 20, 100],
  usual: [5, 20, 100, 400],
  full: [5, 10, 20, 40, 100, 400, 1_000],
};
/** Beyond this many writers a round of row locks takes too long for a usual run. */
const mostLocked: Readonly<Record<LoadSize, number>> = { smoke: 0, quick: 20, usual: 20, full: 1_000 };
/** Volleys that warm an arm of the sweep up, and of the chapter's setting, where every millisecond counts. */
const warmUps: Readonly<Record<LoadSize, { sweep: number; main: number }>> = {
  smoke: { sweep: 1, main: 1 },
  quick: { sweep: 4, main: 8 },
  usual: { sweep: 8, main: 24 },
  full: { sweep: 8, main: 24 },
};
/** How long the model takes in the sweep. Milliseconds. */
const sweepLlmMs = 200;
/** Milliseconds between two questions of the probe. */
const probeEveryMs = 25;

/** Many writers on many documents with a slow model call in the middle: row lock against version. */
export const locking: Cell = {
  name: 'locking',
  title:
    'a model call while a row is locked against one that is checked by version, each writer on a document of its own',
  isUsual: true,
  takes: ['pool', 'concurrency', 'llm-ms'],
  variants(options) {
    return pointsOf(options).map((point): Variant => {
      const { writers, pool, llmMs } = point;
      const rounds = options.rounds ?? longRounds[options.size];
      const lockedMs = point.withRowLock ? Math.ceil(writers / pool) * llmMs : 0;
      return {
        cell: 'locking',
        settings: { writers, pool, llm_ms: llmMs },
        rounds,
        env: { DB_POOL_MAX: String(pool), ...modelEnv(llmMs) },
        estimateMs: startMs + point.warmUps * 150 + rounds * (lockedMs + llmMs * 1.2 + writers * 2),
        prepare: (stage) => prepare(stage, point),
      };
    });
  },
};

function pointsOf({ size, pool, concurrency, llmMs }: CellOptions): Point[] {
  const isAsked = pool !== undefined || concurrency !== undefined || llmMs !== undefined;
  const main: Point = {
    writers: concurrency ?? (size === 'smoke' ? 6 : chapter.writers),
    pool: pool ?? (size === 'smoke' ? 2 : chapter.pool),
    llmMs: llmMs ?? (size === 'smoke' ? 100 : chapter.llmMs),
    withRowLock: true,
    warmUps: warmUps[size].main,
  };
  if (isAsked) return [main];
  const points = sweep[size].map((writers) => ({
    writers,
    pool: main.pool,
    llmMs: sweepLlmMs,
    withRowLock: writers <= mostLocked[size],
    warmUps: warmUps[size].sweep,
  }));
  return [main, ...points];
}

async function prepare(stage: Stage, { writers, withRowLock, warmUps }: Point): Promise<Prepared> {
  await insertDocs(stage, ['probe']);
  const accepted: Record<string, number> = {};
  const sent: Record<string, number> = {};
  const paths = { row_lock: 'bench/docs/{id}/locked-rewrite', version: 'v1/docs/{id}/rewrite' } as const;
  const names = withRowLock ? (['row_lock', 'version'] as const) : (['version'] as const);

  const write = async (name: keyof typeof paths, round: number | string, count: number, more = '') => {
    const ids = Array.from({ length: count }, (_, n) => `${name}-${round}-${n}`);
    await insertDocs(stage, ids);
    let next = 0;
    return () =>
      fire({
        url: stage.server.url,
        connections: count,
        amount: count,
        headers: stage.headers,
        expect: 200,
        signal: stage.signal,
        shot: () => {
          const id = ids[next++] as string;
          return {
            method: 'POST',
            path: `/${paths[name].replace('{id}', id)}`,
            headers: { 'Idempotency-Key': randomUUID(), 'If-Match': firstTag(id) },
            body: JSON.stringify({ instruction: `Shorten it.${more}` }),
          };
        },
      });
  };

  const arms = names.map((name): Arm => {
    let volley = () => Promise.reject<Awaited<ReturnType<typeof fire>>>(new Error('not prepared'));
    return {
      name,
      async warmUp() {
        // A model in a hurry: what is to be compiled is the server's part.
        for (let n = 1; n <= warmUps; n += 1) {
          await (await write(name, `warm-${n}`, Math.min(writers, 40), ' [[slow:10]]'))();
        }
      },
      async before(round) {
        volley = await write(name, round, writers);
      },
      async run() {
        const probe = startProbe(`${stage.server.url}/v1/docs/probe`, stage.headers, probeEveryMs);
        const before = await stage.server.ask({ kind: 'model' });
        const fired = await volley();
        const after = await stage.server.ask({ kind: 'model' });
        const probed = await probe.stop();
        sent[name] = (sent[name] ?? 0) + writers;
        accepted[name] = (accepted[name] ?? 0) + (fired.statuses[200] ?? 0);
        return { ...fired, metrics: { ...fired.metrics, ...probed, model_calls: after.calls - before.calls } };
      },
    };
  });
  return {
    arms,
    async check(): Promise<Check[]> {
      const checks: Check[] = [];
      for (const name of names) {
        const warm = await sumVersions(stage, `${name}-warm-`);
        const all = await sumVersions(stage, `${name}-`);
        const edits = all.versions - warm.versions - (all.docs - warm.docs);
        checks.push(
          { name: 'every edit was accepted', arm: name, expected: sent[name] ?? 0, actual: accepted[name] ?? 0 },
          { name: 'final versions = accepted edits', arm: name, expected: accepted[name] ?? 0, actual: edits },
        );
      }
      return checks;
    },
  };
}
