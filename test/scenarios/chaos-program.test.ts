import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, rmSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../helpers/database.ts';
import { shareTsxCache } from '../helpers/tsx-cache.ts';

const program = fileURLToPath(new URL('../../scripts/chaos.ts', import.meta.url));

/** Starts the bench in a temporary folder of its own, by which everything it starts is known. */
function startBench(t: TestContext, args: readonly string[]): { child: ChildProcess; folder: string } {
  const folder = temporaryFolder();
  shareTsxCache(folder);
  const child = spawn(process.execPath, ['--import', 'tsx', program, ...args], {
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  t.after(() => {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  return { child, folder };
}

/** Processes whose command names the folder. */
function processesOf(folder: string): string[] {
  const { stdout } = spawnSync('ps', ['-A', '-ww', '-o', 'pid=,args='], { encoding: 'utf8' });
  return stdout.split('\n').filter((line) => line.includes(folder));
}

const serversOf = (folder: string) => processesOf(folder).filter((line) => line.includes('server.mjs'));
/** Asks now and then, since nobody tells of the processes of others. */
async function eventually(isSo: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + 30_000;
  while (!isSo()) {
    assert.ok(performance.now() < deadlineMs, 'it did not happen in thirty seconds');
    await sleep(100);
  }
}

const noPs = spawnSync('ps', ['-A']).status === 0 ? false : 'no ps';

test('a bench that is interrupted ends everything it has started and leaves no file', {
  skip: noPs,
  timeout: 60_000,
}, async (t) => {
  const { child, folder } = startBench(t, ['--minutes', '5', '--seed', '1', '--faults', 'stop_server,stop_postgres']);
  await eventually(() => serversOf(folder).length === 2);
  child.kill('SIGINT');
  const [code] = await once(child, 'exit');
  assert.equal(code, 130);
  assert.deepEqual(processesOf(folder), []);
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.startsWith('retry-safe-')),
    [],
  );
});

test('a bench that is killed leaves no process either, not even one that it had stopped', {
  skip: noPs,
  timeout: 60_000,
}, async (t) => {
  const { child, folder } = startBench(t, ['--minutes', '5', '--seed', '1', '--faults', 'stop_server,stop_postgres']);
  await eventually(() => serversOf(folder).length === 2);
  // In the middle of the first stop.
  const stopped = () =>
    spawnSync('ps', ['-A', '-ww', '-o', 'stat=,args='], { encoding: 'utf8' })
      .stdout.split('\n')
      .some((line) => line.startsWith('T') && line.includes(folder));
  await eventually(stopped);
  child.kill('SIGKILL');
  await eventually(() => processesOf(folder).length === 0);
});

for (const [args, sentence] of [
  [['--minutes', '0'], '--minutes takes a number above 0, not 0'],
  [['--seed', 'x'], '--seed takes a whole number, not x'],
  [['--faults', 'kill_server,flood'], '--faults: there is no flood; --help lists them'],
] as const) {
  test(`the bench refuses ${args.join(' ')} in one sentence`, () => {
    const { status, stderr } = spawnSync(process.execPath, ['--import', 'tsx', program, ...args], { encoding: 'utf8' });
    assert.equal(stderr.trim(), sentence);
    assert.equal(status, 2);
  });
}
