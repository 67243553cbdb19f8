import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { ownPlaces } from '../../bench/stage/bundle.ts';

const project = fileURLToPath(new URL('../..', import.meta.url));

/** Tells the runner about each test; bundled with the tests. */
export const reporterFile = 'scripts/test/events.ts';

/** Test files as JavaScript. */
export type BundledTests = {
  /** Where the JavaScript of a test file is. */
  pathOf(file: string): string;
  remove(): void;
};

/**
 * Turns all test files and what they import into JavaScript once, with what they share in files of its own. Each of them runs in a
 * process of its own, and to transform and find two hundred modules in each would take longer than most tests do.
 */
export async function bundleTests(files: readonly string[]): Promise<BundledTests> {
  // Inside the project, so that packages are found.
  const folder = join(project, 'node_modules/.cache', `retry-safe-tests-${process.pid}`);
  await build({
    absWorkingDir: project,
    entryPoints: [...files, reporterFile],
    outbase: project,
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    sourcemap: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    packages: 'external',
    logLevel: 'error',
    plugins: [ownPlaces],
  });
  return {
    pathOf: (file) => join(folder, file.replace(/\.ts$/, '.mjs')),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
