import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ratios } from '../../bench/figures/index.ts';
import { summarise } from '../../bench/statistics/summary.ts';
import { temporaryFolder } from '../helpers/database.ts';
import { freshDatabase } from '../helpers/server.ts';
import { shareTsxCache } from '../helpers/tsx-cache.ts';
import { checkLine, roundLine } from './lines.ts';

const entry = fileURLToPath(new URL('../../bench/main.ts', import.meta.url));
const reportEntry = fileURLToPath(new URL('../../bench/report.ts', import.meta.url));

/** `npm run bench` as a group of its own, as a terminal starts it. */
function start(args: readonly string[], env: Record<string, string>, program = entry): ChildProcess {
  return spawn(process.execPath, ['--import', 'tsx', program, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
}

async function run(args: readonly string[], env: Record<string, string> = {}, program = entry) {
  const child = start(args, env, program);
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout as NodeJS.ReadableStream),
    text(child.stderr as NodeJS.ReadableStream),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  return { stdout, stderr, code };
}

test('--list names every cell, --help every option, and a wrong option ends with 2 and a sentence', async () => {
  const [list, help, wrong] = await Promise.all([run(['--list']), run(['--help']), run(['--wrong'])]);
  for (const cell of ['locking', 'contention', 'keys', 'tags', 'growth', 'streams', 'http', 'overload']) {
    assert.match(list.stdout, new RegExp(`^${cell} `, 'm'));
  }
  for (const option of ['--quick', '--full', '--rounds', '--pool', '--concurrency', '--llm-ms', '--json', '--out']) {
    assert.ok(help.stdout.includes(option), option);
  }
  assert.deepEqual([list.code, help.code, wrong.code], [0, 0, 2]);
  assert.match(wrong.stderr, /^Unknown option '--wrong'/);
  assert.equal(wrong.stdout, '');
});

test('--json prints one object and nothing else; --out keeps report, charts, statistics and raw lines', async (t) => {
  const out = temporaryFolder();
  t.after(() => rmSync(out, { recursive: true, force: true }));
  const env = { DATABASE_URL: await freshDatabase(t) };
  const { stdout, code } = await run(['contention', '--smoke', '--json', '--out', out], env);
  assert.equal(code, 0);
  const json = JSON.parse(stdout) as { cell: string; ok: boolean };
  assert.deepEqual([json.cell, json.ok], ['contention', true]);
  assert.match(readFileSync(join(out, 'results.md'), 'utf8'), /!\[[^\]]+\]\(results\/contention\.svg\)/);
  assert.deepEqual(readdirSync(join(out, 'results')).sort(), ['contention.svg', 'raw.ndjson', 'statistics.json']);
});

test('a report of figures that a check voided exits with 1', async (t) => {
  const folder = temporaryFolder();
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'statistics.json');
  for (const ok of [true, false]) {
    writeFileSync(file, JSON.stringify(summarise([roundLine({}), checkLine({ ok })], ratios)));
    const { stdout, code } = await run([file, '--json'], {}, reportEntry);
    assert.equal(code, ok ? 0 : 1);
    assert.equal((JSON.parse(stdout) as { ok: boolean }).ok, ok);
  }
});

test('Ctrl-C while a comparison runs leaves no process and no file behind', { skip: notLinux() }, async (t) => {
  const { child, dataDir, isGone } = await startRun(t);
  // A terminal sends it to the whole group.
  process.kill(-(child.pid as number), 'SIGINT');
  const [code] = await once(child, 'exit');
  assert.equal(code, 130);
  await until(isGone);
  // What tsx keeps for the next start is not ours.
  assert.deepEqual(
    readdirSync(dataDir).filter((name) => !name.startsWith('tsx-')),
    [],
  );
});

test('nothing runs on when the benchmark is killed', { skip: notLinux() }, async (t) => {
  const { child, isGone } = await startRun(t);
  child.kill('SIGKILL');
  await once(child, 'exit');
  await until(isGone);
});

/** Longest time that a loaded machine may take to start or to clean up. Milliseconds. */
const limitMs = 60_000;

/** What other processes do can only be asked again and again. */
async function until(isSo: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + limitMs;
  while (!isSo()) {
    if (performance.now() > deadlineMs) throw new Error('what was waited for did not happen');
    await sleep(20);
  }
}

function notLinux(): string | false {
  return existsSync('/proc/self/environ') ? false : 'needs /proc';
}

/** Starts a long run on an embedded Postgres of its own and waits for its server. */
async function startRun(t: TestContext) {
  const dataDir = temporaryFolder();
  shareTsxCache(dataDir);
  const mark = `BENCH_TEST=${randomUUID()}`;
  const child = start(['locking', '--pool', '1', '--concurrency', '20', '--llm-ms', '2000'], {
    DATA_DIR: dataDir,
    TMPDIR: dataDir,
    BENCH_TEST: mark.slice('BENCH_TEST='.length),
  });
  t.after(async () => {
    child.kill('SIGKILL');
    await until(() => ours().length === 0);
    rmSync(dataDir, { recursive: true, force: true });
  });
  // By its environment or, for Postgres, which is given a clean one, by the folder in its command line.
  const isOurs = (pid: string) =>
    read(`/proc/${pid}/environ`).includes(mark) || read(`/proc/${pid}/cmdline`).includes(dataDir);
  const ours = () => readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name) && isOurs(name));
  const server = () => ours().some((pid) => read(`/proc/${pid}/cmdline`).includes('server.mjs'));
  await until(server);
  assert.ok(
    ours().some((pid) => read(`/proc/${pid}/cmdline`).includes('postgres')),
    'Postgres was not recognised',
  );
  return { child, dataDir, isGone: () => ours().length === 0 };
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}
