import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const usage = `Usage: npm run lint:openapi

Lints docs/openapi.json by redocly.yaml; a warning counts as an error. That the file is what the code says is told by
npm run docs -- --check.
`;

try {
  if (parseArgs({ options: { help: { type: 'boolean', short: 'h' } } }).values.help) {
    process.stdout.write(usage);
    process.exit(0);
  }
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n\n${usage}`);
  process.exit(2);
}

const require = createRequire(import.meta.url);
const cli = join(require.resolve('@redocly/cli/package.json'), '..', 'bin', 'cli.js');
// Redocly's own notices (a new version, an old Node) are shown only beside a finding.
const { status, stdout, stderr } = spawnSync(process.execPath, [cli, 'lint'], {
  encoding: 'utf8',
  env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
});
if (status !== 0) process.stderr.write(`${stdout}${stderr}`);
process.exitCode = status ?? 1;
