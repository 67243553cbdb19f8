import { readFile, writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { contractVersion } from '../src/openapi-route.ts';
import { contract } from '../src/protocol/contract.ts';
import { apiMarkdown } from '../src/reference/api-page.ts';
import { configurationMarkdown } from '../src/reference/configuration.ts';
import { errorsMarkdown } from '../src/reference/errors-page.ts';
import { openApi } from '../src/reference/openapi.ts';

const usage = `Usage: npm run docs [-- --check]

Writes what is derived from the code: docs/api.md, docs/errors.md, docs/configuration.md and docs/openapi.json.
  --check    write nothing; exit 1 when a page is not what would be written
`;

/** The derived pages by path. */
const pages: Readonly<Record<string, string>> = {
  'docs/api.md': apiMarkdown(contract),
  'docs/errors.md': errorsMarkdown(),
  'docs/configuration.md': configurationMarkdown(),
  // What a running server answers on /openapi.json, in lines: for linters and generators that want a file.
  'docs/openapi.json': `${JSON.stringify(openApi(contract, contractVersion), null, 2)}\n`,
};

function readArguments() {
  try {
    return parseArgs({
      options: { check: { type: 'boolean', default: false }, help: { type: 'boolean', short: 'h', default: false } },
    }).values;
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${usage}`);
    process.exit(2);
  }
}

const options = readArguments();
if (options.help) {
  process.stdout.write(usage);
  process.exit(0);
}
let stale = 0;
for (const [path, text] of Object.entries(pages)) {
  const url = new URL(`../${path}`, import.meta.url);
  const current = await readFile(url, 'utf8').catch(() => '');
  if (current === text) continue;
  stale += 1;
  if (options.check) process.stderr.write(`${path} is stale: npm run docs writes it again\n`);
  else await writeFile(url, text);
}
process.exit(options.check && stale > 0 ? 1 : 0);
