import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of the project. */
export const project = fileURLToPath(new URL('../..', import.meta.url));

/** Compiles the library into `folder`, which is emptied first: modules, types, and the migrations of the key. Throws what tsc says. */
export function build(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
  const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc');
  const args = [tsc, '-p', join(project, 'tsconfig.build.json'), '--outDir', folder];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: project, encoding: 'utf8' });
  if (status !== 0) throw new Error(`tsc failed:\n${stdout}${stderr}`);
  cpSync(join(project, 'src/db/key-migrations'), join(folder, 'db/key-migrations'), { recursive: true });
  for (const file of filesIn(folder, '.d.ts')) {
    // tsc renames the imports of the modules and leaves those of their types.
    const text = readFileSync(file, 'utf8');
    writeFileSync(file, text.replaceAll(/((?:from |import\()'\.{1,2}\/[^']+)\.ts'/g, "$1.js'"));
  }
}

/** The packages that the modules in a folder import. */
export function packagesIn(folder: string): string[] {
  const names = filesIn(folder, '.js').flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/(?:from |import )'([^'.][^']*)'/g)].map(([, name = '']) => name),
  );
  const packages = names.filter((name) => !name.startsWith('node:'));
  return [...new Set(packages.map((name) => name.split('/', name.startsWith('@') ? 2 : 1).join('/')))].sort();
}

function filesIn(folder: string, ending: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith(ending))
    .map((path) => join(folder, path));
}
