import { randomUUID } from 'node:crypto';
import type { Arm, Cell, CellOptions, Check, Prepared, Variant } from '../cell.ts';
import type { LoadSize } from '../options.ts';
import { firstTag, insertDocs, sumVersions } from '../stage/documents.ts';
import type { Called, Stage } from '../stage/stage.ts';
import { modelEnv } from './model-env.ts';
import { longRounds, startMs } from './sizes.ts';

const armNames = ['row_lock', 'version', 'rerun', 'queue'] as const;
type ArmName = (typeof armNames)[number];

const writersOf: Readonly<Record<LoadSize, readonly number[]>> = {
  smoke: [3],
  quick: [2, 16],
  usual: [2, 6, 12],
  full: [2, 5, 10, 20, 40],
};
/** How long the model takes. Milliseconds. */
const usualLlmMs: Readonly<Record<LoadSize, number>> = { smoke: 50, quick: 100, usual: 100, full: 200 };
/** Writers of a warm-up, whose model is in a hurry. */
const warmWriters = 16;
/** Tries of a writer that runs again: more than the losses one can have. */
const maxTries = 1_000;

/** Many writers on one document. */
export const contention: Cell = {
  name: 'contention',
  title: 'writers on one document: row lock, version with 412, version with re-run, a queue by the document',
  isUsual: true,
  takes: ['pool', 'concurrency', 'llm-ms', 'plant'],
  variants(options) {
    const { size, concurrency } = options;
    const rounds = options.rounds ?? longRounds[size];
    const pool = options.pool ?? 10;
    const llmMs = options.llmMs ?? usualLlmMs[size];
    return (concurrency === undefined ? writersOf[size] : [concurrency]).map(
      (writers): Variant => ({
        cell: 'contention',
        settings: { writers, pool, llm_ms: llmMs },
        rounds,
        env: {
          DB_POOL_MAX: String(pool),
          ...modelEnv(llmMs),
          ...(options.plant === undefined ? {} : { BENCH_PLANT: options.plant }),
        },
        // Three arms work through the document one writer after the other, one does not.
        estimateMs: startMs + rounds * llmMs * (3 * writers + 1) * 1.05,
        prepare: (stage) => prepare(stage, options, writers),
      }),
    );
  },
};

type Edit = { readonly status: number; readonly tries: number };

async function prepare(stage: Stage, { size }: CellOptions, writers: number): Promise<Prepared> {
  const kept: Record<string, number> = {};
  const statuses: Record<string, number> = {};

  const post = (path: string, headers: Record<string, string>, instruction: string) =>
    stage.call(`POST ${path}`, {
      headers: { 'Idempotency-Key': randomUUID(), ...headers },
      body: { instruction },
    });
  const byVersion = (id: string, tag: string, instruction: string) =>
    post(`/v1/docs/${id}/rewrite`, { 'If-Match': tag }, instruction);

  /** What one writer does until it is done or gives up. */
  const edit: Readonly<Record<ArmName, (id: string, instruction: string) => Promise<Edit>>> = {
    row_lock: async (id, instruction) => once(await post(`/bench/docs/${id}/locked-rewrite`, {}, instruction)),
    queue: async (id, instruction) => once(await post(`/bench/docs/${id}/queued-rewrite`, {}, instruction)),
    version: async (id, instruction) => once(await byVersion(id, firstTag(id), instruction)),
    async rerun(id, instruction) {
      let tag = firstTag(id);
      for (let tries = 1; ; tries += 1) {
        const answer = await byVersion(id, tag, instruction);
        const current = answer.headers.get('etag');
        if (answer.status !== 412 || current === null || tries === maxTries) return { status: answer.status, tries };
        tag = current;
      }
    },
  };

  const runArm = async (name: ArmName, id: string, count: number, more = '') => {
    const before = await stage.server.ask({ kind: 'model' });
    const startedMs = performance.now();
    const edits = await Promise.all(
      Array.from({ length: count }, (_, writer) => edit[name](id, `Writer ${writer}: shorten it.${more}`)),
    );
    const wallMs = performance.now() - startedMs;
    const after = await stage.server.ask({ kind: 'model' });
    return {
      edits,
      wallMs,
      calls: after.calls - before.calls,
      tokens: after.completionTokens - before.completionTokens,
    };
  };

  const arms = armNames.map(
    (name): Arm => ({
      name,
      async warmUp() {
        if (size === 'smoke') return;
        const id = `warm-${name}`;
        await insertDocs(stage, [id]);
        await runArm(name, id, warmWriters, ' [[slow:10]]');
      },
      before: (round) => insertDocs(stage, [`${name}-${round}`]),
      async run(round) {
        const { edits, wallMs, calls, tokens } = await runArm(name, `${name}-${round}`, writers);
        const counted: Record<string, number> = {};
        for (const { status, tries } of edits) {
          counted[status] = (counted[status] ?? 0) + 1;
          // A re-run was told 412 in every try but its last.
          if (tries > 1) counted[412] = (counted[412] ?? 0) + tries - 1;
        }
        for (const [status, times] of Object.entries(counted)) statuses[status] = (statuses[status] ?? 0) + times;
        const won = counted[200] ?? 0;
        kept[name] = (kept[name] ?? 0) + won;
        return {
          statuses: counted,
          metrics: {
            wall_ms: wallMs,
            edits_kept: won,
            goodput_per_s: (won / wallMs) * 1_000,
            model_calls: calls,
            tokens_paid: tokens,
            // Every kept edit is one call's answer.
            tokens_wasted: calls === 0 ? 0 : tokens * (1 - Math.min(won, calls) / calls),
          },
        };
      },
    }),
  );
  return {
    arms,
    async check(): Promise<Check[]> {
      const checks: Check[] = [
        {
          name: 'answers other than 200 and 412',
          expected: 0,
          actual: Object.entries(statuses).reduce(
            (sum, [status, times]) => (status === '200' || status === '412' ? sum : sum + times),
            0,
          ),
        },
      ];
      for (const name of armNames) {
        const { docs, versions } = await sumVersions(stage, `${name}-`);
        const edits = versions - docs;
        checks.push({
          name: 'final versions = accepted edits',
          arm: name,
          expected: kept[name] ?? 0,
          actual: edits,
        });
      }
      return checks;
    },
  };
}

function once({ status }: Called): Edit {
  return { status, tries: 1 };
}
