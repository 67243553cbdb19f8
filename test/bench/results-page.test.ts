import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { atEnd } from '../helpers/cleanup.ts';
import { temporaryFolder } from '../helpers/database.ts';

const project = fileURLToPath(new URL('../..', import.meta.url));

function run(program: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', 'tsx', program, ...args], {
    cwd: project,
    encoding: 'utf8',
    maxBuffer: 64 * 2 ** 20,
  });
  assert.equal(status, 0, stderr);
  return stdout;
}

test('docs/results.md, its charts, the README’s sentence and the table of docs/operations.md are what the raw lines give', (t) => {
  const results = join(project, 'docs/results');
  const folder = temporaryFolder();
  atEnd(t, () => rmSync(folder, { recursive: true }));
  assert.deepEqual(
    JSON.parse(run('bench/summarise.ts', join(results, 'raw.ndjson'))),
    JSON.parse(readFileSync(join(results, 'statistics.json'), 'utf8')),
  );
  mkdirSync(join(folder, 'docs/results'), { recursive: true });
  const files = ['README.md', 'docs/operations.md', 'docs/results.md'];
  for (const file of files.slice(0, 2)) copyFileSync(join(project, file), join(folder, file));
  cpSync(join(results, 'fuzz.json'), join(folder, 'docs/results/fuzz.json'));
  run('bench/report.ts', join(results, 'statistics.json'), '--out', join(folder, 'docs'));
  const charts = readdirSync(results).filter((name) => name.endsWith('.svg'));
  assert.ok(charts.length > 0);
  for (const file of [...files, ...charts.map((name) => `docs/results/${name}`)]) {
    assert.equal(readFileSync(join(folder, file), 'utf8'), readFileSync(join(project, file), 'utf8'), file);
  }
});
