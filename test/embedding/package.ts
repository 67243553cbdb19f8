import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../helpers/database.ts';

const project = fileURLToPath(new URL('../..', import.meta.url));

/** A folder in which nothing was but the packed library, its pages' files and what they install. */
export type Newcomer = {
  readonly folder: string;
  /** The path of a file of the pages. */
  file(name: string): string;
  /** Type-checks all files; answers what tsc says. `options` are flags of tsc. */
  typeCheck(...options: string[]): string;
  remove(): void;
};

/** Packs the library, unpacks it where an install would, and writes the pages' files beside it. */
export function unpackAsNewcomer(): Newcomer {
  const folder = temporaryFolder();
  const packed = run(process.execPath, ['--import', 'tsx', join(project, 'scripts/pack.ts'), '--to', folder], project);
  const modules = join(folder, 'node_modules');
  const home = join(modules, 'retry-safe');
  mkdirSync(home, { recursive: true });
  run('tar', ['xzf', packed.trim(), '--strip-components=1', '-C', home], folder);
  // Everything else is what the project has installed already: no registry is asked.
  linkAll(join(project, 'node_modules'), modules);
  for (const page of ['README.md', 'client.md']) {
    const files = filesOf(readFileSync(join(home, page), 'utf8'));
    for (const [name, text] of files) writeFileSync(join(folder, name), text);
  }
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module', private: true }));
  return {
    folder,
    file: (name) => join(folder, name),
    typeCheck(...options) {
      const tsc = join(modules, 'typescript/bin/tsc');
      return spawnSync(process.execPath, [tsc, '-p', folder, ...options], { cwd: folder, encoding: 'utf8' }).stdout;
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** The code blocks of a page that begin with a file's name, by that name. */
export function filesOf(page: string): Map<string, string> {
  const blocks = page.matchAll(/```\w+\n((?:\/\/|--) (\S+\.\w+)\n.*?)```/gs);
  return new Map([...blocks].map(([, text = '', name = '']) => [name, text]));
}

function linkAll(from: string, to: string): void {
  for (const name of readdirSync(from)) {
    if (name.startsWith('.')) continue;
    if (name.startsWith('@')) {
      mkdirSync(join(to, name), { recursive: true });
      linkAll(join(from, name), join(to, name));
    } else symlinkSync(join(from, name), join(to, name));
  }
}

function run(program: string, args: readonly string[], cwd: string): string {
  return execFileSync(program, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
}
