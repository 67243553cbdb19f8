import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { after, before, test } from 'node:test';
import type { Variant } from '../../bench/cell.ts';
import { cells } from '../../bench/cells/index.ts';
import type { Environment } from '../../bench/environment.ts';
import { figures, ratios } from '../../bench/figures/index.ts';
import type { RawLine } from '../../bench/lines.ts';
import { parseOptions, type RunOptions } from '../../bench/options.ts';
import { renderTerminal } from '../../bench/report/blocks.ts';
import { reportBlocks } from '../../bench/report/document.ts';
import { groupsOf, runVariants } from '../../bench/run-variants.ts';
import { bundleProgram } from '../../bench/stage/bundle.ts';
import { type Cluster, openCluster } from '../../bench/stage/cluster.ts';
import { serverEntry } from '../../bench/stage/server-process.ts';
import { jsonOf } from '../../bench/statistics/json.ts';
import { type Summary, summarise } from '../../bench/statistics/summary.ts';
import { createTestDatabase, type TestDatabase, temporaryFolder } from '../helpers/database.ts';
import { environment } from './lines.ts';

/*
 * Each cell for a moment, for correctness and never for speed: its server starts, its arms answer, its checks hold, and its
 * part of the report has figures.
 */

let database: TestDatabase;
let cluster: Cluster;
let folder: string;
let program: string;

before(async () => {
  database = await createTestDatabase();
  cluster = await openCluster(database.url, '');
  folder = temporaryFolder();
  program = await bundleProgram(serverEntry, folder);
});

after(async () => {
  await cluster.stop();
  await database.drop();
  rmSync(folder, { recursive: true });
});

function variantsOf(...argv: string[]): Variant[] {
  const command = parseOptions([...argv, '--smoke'], cells);
  const { options } = command as { options: RunOptions };
  return cells.filter((cell) => options.cells.includes(cell.name)).flatMap((cell) => [...cell.variants(options)]);
}

/** What a dotted path leads to. */
function at(tree: unknown, path: string): unknown {
  return path.split('.').reduce((node, name) => (node as Record<string, unknown> | undefined)?.[name], tree);
}

async function measure(variants: readonly Variant[]): Promise<Summary> {
  return summarise(await linesOf(variants), ratios);
}

async function linesOf(variants: readonly Variant[]): Promise<RawLine[]> {
  const lines: RawLine[] = [];
  const run = {
    cluster,
    program,
    environment: environment satisfies Environment,
    signal: new AbortController().signal,
    onLine: (line: RawLine) => lines.push(line),
    onPart: () => {},
  };
  for (const group of groupsOf(variants)) await runVariants(group, run);
  return lines;
}

/** Figures that every arm of a cell must have. */
const needed: Readonly<Record<string, readonly string[]>> = {
  locking: ['wall_ms', 'probe.p50_ms', 'probe.max_ms', 'model_calls'],
  contention: ['wall_ms', 'edits_kept', 'model_calls', 'tokens_paid', 'tokens_wasted'],
  keys: ['goodput_per_s', 'p50_ms', 'p99_ms', 'node_cpu_us_per_request', 'wal_bytes_per_request'],
  tags: ['goodput_per_s', 'wire_bytes_per_request', 'node_cpu_us_per_request'],
  growth: ['p50_ms', 'p99_ms', 'swept_per_s', 'key_bytes', 'tombstone_bytes', 'vacuum_scale_factor'],
  streams: ['first_byte.p99_ms', 'lag.p50_ms', 'event_rows_per_answer', 'wal_bytes_per_request'],
  http: ['goodput_per_s', 'node_cpu_us_per_request'],
  overload: ['goodput_per_s', 'p99_ms'],
};

/** Fields of the JSON that `bench/README.md` promises by name. */
const documented: Readonly<Record<string, readonly string[]>> = {
  locking: [
    'arms.row_lock.wall_ms',
    'arms.version.wall_ms',
    'arms.row_lock.probe.max_ms',
    'arms.version.probe.max_ms',
    'ratio',
  ],
  keys: ['arms.keyed.goodput_per_s', 'ratio_keyed_to_plain', 'ratio_replay_to_get'],
};

for (const { name } of cells) {
  test(`the cell ${name} measures all its arms, and its checks hold`, async () => {
    const summary = await measure(variantsOf(name));
    for (const variant of summary.variants) {
      assert.equal(variant.fault, undefined);
      assert.deepEqual(
        variant.checks.filter((check) => !check.ok),
        [],
      );
      assert.ok(variant.checks.length > 0, 'nothing was checked');
      for (const [arm, { median }] of Object.entries(variant.arms)) {
        for (const metric of needed[name] ?? ['missing']) {
          assert.ok(Number.isFinite(median[metric]), `${arm} has no ${metric}`);
        }
      }
      assert.ok(Object.keys(variant.arms).length >= 2, 'there is nothing to compare');
    }
    const json = jsonOf(summary);
    for (const path of documented[name] ?? []) assert.equal(typeof at(json, path), 'number', path);
    const shown = renderTerminal(reportBlocks(summary, figures), () => undefined);
    assert.doesNotMatch(shown, /NaN|undefined|void/);
  });
}

test('a planted lost update is found, voids its arm alone and fails the run', async () => {
  const summary = await measure(variantsOf('contention', '--plant', 'lost-update'));
  const [variant] = summary.variants;
  assert.equal(summary.ok, false);
  assert.equal(variant?.arms.row_lock?.isVoid, true);
  assert.equal(variant?.arms.version?.isVoid, false);
  const failed = variant?.checks.filter((check) => !check.ok) ?? [];
  assert.deepEqual(
    failed.map(({ name, arm }) => ({ name, arm })),
    [{ name: 'final versions = accepted edits', arm: 'row_lock' }],
  );
  assert.ok(Number(failed[0]?.actual) < Number(failed[0]?.expected), 'an accepted edit is gone');
});

test('the rounds of comparisons that take turns run through all of them, forth and back', async () => {
  const lines = await linesOf(variantsOf('growth', '--rounds', '2'));
  const rounds = lines.flatMap((line) =>
    line.type === 'round' ? [`${line.round}.${line.order} ${line.settings.stored} ${line.arm}`] : [],
  );
  assert.deepEqual(rounds, [
    '1.1 1000 first_run',
    '1.2 1000 replay',
    '1.1 2000 first_run',
    '1.2 2000 replay',
    '2.1 2000 replay',
    '2.2 2000 first_run',
    '2.1 1000 replay',
    '2.2 1000 first_run',
  ]);
});

test('a comparison whose server does not start is told as a fault of all it takes turns with, and leaves no database behind', async () => {
  const variants = variantsOf('growth').map((variant, index) => ({
    ...variant,
    env: index === 1 ? { DB_POOL_MAX: 'none' } : {},
  }));
  const summary = await measure(variants);
  assert.equal(summary.variants.length, 2);
  for (const { fault } of summary.variants) assert.match(fault ?? '', /DB_POOL_MAX/);
  const left = await cluster.sql`select datname from pg_database where starts_with(datname, 'bench_')`;
  assert.deepEqual([...left], []);
});
