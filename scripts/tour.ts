import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { parseArgs } from 'node:util';
import { readSecret } from '../src/auth/development-secret.ts';
import { signToken } from '../src/auth/tokens.ts';
import { parseConfig } from '../src/config.ts';
import { createMask, stepsOf, withAnswers } from './tour/document.ts';
import { openShell } from './tour/shell.ts';

const usage = `Usage: npm run tour -- [--url URL] [--no-wait] [--update]

Walks through docs/tour.md against a running server: shows each command, runs it, shows its answer.
  --url URL    the server; default: http://127.0.0.1:3000
  --no-wait    do not wait for Enter between steps
  --update     write the answers into docs/tour.md (against a fresh server)
`;

function readArguments() {
  try {
    return parseArgs({
      options: {
        url: { type: 'string', default: 'http://127.0.0.1:3000' },
        'no-wait': { type: 'boolean', default: false },
        update: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    }).values;
  } catch (error) {
    return fail(`${(error as Error).message}\n\n${usage}`, 2);
  }
}

function fail(message: string, code: number): never {
  process.stderr.write(`${message}\n`);
  process.exit(code);
}

const options = readArguments();
if (options.help) {
  process.stdout.write(usage);
  process.exit(0);
}
if (!URL.canParse(options.url)) fail(`--url: ${options.url} is not a URL.`, 2);
const base = options.url.replace(/\/$/, '');
await fetch(`${base}/healthz`).catch(() => fail(`Nothing answers at ${base}: run npm start in another terminal.`, 1));

const config = parseConfig(process.env);
const secret = config.auth.secret ?? (await readSecret(join(resolve(config.dataDir), 'auth-secret')));
if (secret === undefined)
  fail('There is no secret to sign tokens with: run npm start here once, or set AUTH_SECRET.', 1);
const token = (tenant: string, sub: string) =>
  signToken(secret, { tenant, sub, scope: 'credits:write' }, 3_600, config.auth);

const path = new URL('../docs/tour.md', import.meta.url);
const markdown = await readFile(path, 'utf8');
const shell = openShell({ URL: base, ACME: await token('acme', 'alice'), GLOBEX: await token('globex', 'bob') });
process.once('SIGINT', () => {
  shell.close();
  process.exit(130);
});
const terminal = process.stdin.isTTY && !options['no-wait'] && !options.update;
const prompt = terminal ? createInterface({ input: process.stdin, output: process.stdout }) : undefined;

const mask = createMask();
const answers: string[] = [];
const steps = stepsOf(markdown);
for (const [index, step] of steps.entries()) {
  if (!options.update)
    process.stdout.write(`${step.prose.trim()}\n\n$ ${step.command.trim().replaceAll('\n', '\n  ')}\n`);
  else process.stdout.write(`\rstep ${index + 1} of ${steps.length}`);
  if (prompt !== undefined) await prompt.question('[Enter] ');
  const output = await shell.run(step.command);
  const answer = mask(output);
  answers.push(answer);
  if (options.update) continue;
  process.stdout.write(`\n${output.trim()}\n\n`);
  if (answer !== step.answer)
    process.stdout.write('(The document shows another answer: it was written against a fresh server.)\n\n');
}
prompt?.close();
shell.close();
if (options.update) {
  await writeFile(path, withAnswers(markdown, answers));
  process.stdout.write('\ndocs/tour.md is up to date\n');
}
