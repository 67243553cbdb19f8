import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { build, packagesIn, project } from './package/build.ts';
import { libraryManifest } from './package/manifest.ts';

const usage = `Usage: npm run pack [-- --to FOLDER]

Builds the library and packs it, with no more dependencies than it has; prints the tarball's path.
`;

function readArguments() {
  try {
    return parseArgs({ options: { to: { type: 'string', default: '.' }, help: { type: 'boolean', short: 'h' } } })
      .values;
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${usage}`);
    process.exit(2);
  }
}

const { to, help } = readArguments();
if (help) {
  process.stdout.write(usage);
  process.exit(0);
}
const stage = mkdtempSync(join(tmpdir(), 'retry-safe-package-'));
try {
  const dist = join(stage, 'dist');
  build(dist);
  writeFileSync(join(stage, 'package.json'), JSON.stringify(libraryManifest(packagesIn(dist)), null, 2));
  copyFileSync(join(project, 'LICENSE'), join(stage, 'LICENSE'));
  copyFileSync(join(project, 'docs/embedding.md'), join(stage, 'README.md'));
  copyFileSync(join(project, 'docs/client.md'), join(stage, 'client.md'));
  mkdirSync(to, { recursive: true });
  const { status, stdout, stderr } = spawnSync('npm', ['pack', '--json', '--pack-destination', resolve(to)], {
    cwd: stage,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`npm pack failed:\n${stderr}`);
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
  process.stdout.write(`${join(resolve(to), filename)}\n`);
} finally {
  rmSync(stage, { recursive: true, force: true });
}
