import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { atEnd } from './helpers/cleanup.ts';
import { temporaryFolder } from './helpers/database.ts';

const project = fileURLToPath(new URL('..', import.meta.url));
const { scripts } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>;
};

/** Scripts that are one program of this project, by their name. */
const programs = Object.entries(scripts).flatMap(([name, command]) => {
  const file = /^(?:exec )?node --import tsx (\S+\.ts)$/.exec(command)?.[1];
  return file === undefined ? [] : [{ name, file }];
});

async function run(file: string, ...args: string[]) {
  const child = spawn(process.execPath, ['--import', 'tsx', join(project, file), ...args], {
    cwd: project,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const [out, err, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { out, err, code };
}

test('every program that npm can run tells how it is used, and refuses an option it does not know', async () => {
  assert.ok(programs.length >= 15, programs.map(({ name }) => name).join());
  for (const { name, file } of programs) {
    const [help, unknown] = await Promise.all([run(file, '--help'), run(file, '--no-such-option')]);
    assert.equal(help.code, 0, `${name} --help: ${help.err}`);
    assert.ok(help.out.trim().split('\n').length > 1, `${name} --help`);
    assert.equal(unknown.code, 2, `${name} --no-such-option: ${unknown.out}${unknown.err}`);
    assert.match(unknown.err, /no-such-option/, name);
  }
});

test('every program that npm can run is in the docs', () => {
  const pages = [
    'README.md',
    'bench/README.md',
    'SECURITY.md',
    'docs/operations.md',
    'docs/embedding.md',
    'docs/client.md',
  ];
  const more = ['docs/tour.md', 'docs/reliability.md', 'docs/architecture.md', 'docs/page.md'];
  const all = [...pages, ...more].map((page) => {
    try {
      return readFileSync(join(project, page), 'utf8');
    } catch {
      return '';
    }
  });
  const missing = programs
    .map(({ name }) => name)
    .filter((name) => {
      const command = new RegExp(`npm (?:run (?:-s )?)?${name}\\b`);
      return !all.some((page) => command.test(page));
    });
  assert.deepEqual(missing, []);
});

test('fuzz sends what it was asked to, says what came of it, and writes its figures where it is told', async (t) => {
  const folder = temporaryFolder();
  atEnd(t, () => rmSync(folder, { recursive: true }));
  const { out, code } = await run('scripts/fuzz.ts', '--runs', '60', '--seed', '3', '--write', folder);
  assert.equal(code, 0, out);
  const written = JSON.parse(readFileSync(join(folder, 'results/fuzz.json'), 'utf8'));
  assert.deepEqual([written.runs, written.seed, written.faults], [60, 3, 0]);
  assert.equal(
    Object.values(written.counts as Record<string, number>).reduce((sum, count) => sum + count, 0),
    60,
  );
  assert.deepEqual(JSON.parse(out.trim().split('\n').at(-1) ?? ''), written);
});
