import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { build, project } from './package/build.ts';

const usage = `Usage: npm run build

Compiles the library into dist/, types and migrations of the key included. npm run pack makes a package of it.
`;

function readArguments() {
  try {
    return parseArgs({ options: { help: { type: 'boolean', short: 'h' } } }).values;
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${usage}`);
    process.exit(2);
  }
}

if (readArguments().help) process.stdout.write(usage);
else build(join(project, 'dist'));
