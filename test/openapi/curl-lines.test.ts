import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { openShell } from '../../scripts/tour/shell.ts';
import { contract } from '../../src/protocol/contract.ts';
import { createDoc } from '../helpers/docs.ts';
import { startServer, testToken } from '../helpers/server.ts';

/** A section of the page: an operation, the statuses it says, its line. */
type Section = { readonly name: string; readonly answers: readonly string[]; readonly line: string };

const page = await readFile(new URL('../../docs/api.md', import.meta.url), 'utf8');
const sections = page
  .split(/^## /m)
  .slice(1)
  .map(
    (text): Section => ({
      name: text.split('\n')[0] ?? '',
      answers: (/^- Answers: (.*)\.$/m.exec(text)?.[1] ?? '').split(', '),
      line: /^```sh\n(.*)\n```$/m.exec(text)?.[1] ?? '',
    }),
  );

test('each line of the API reference works as it stands, and in its order, when its capitals are filled in', async (t) => {
  assert.deepEqual(
    sections.map(({ name }) => name),
    Object.keys(contract),
  );
  const server = await startServer(t, { seedCredits: true });
  const shell = openShell({ URL: server.url, ACME: await testToken({ scope: 'credits:write' }) });
  t.after(() => shell.close());
  // What a reader takes from earlier answers.
  const seen: Record<string, string> = { KEY: 'createOrder-1' };
  for (const { name, answers, line } of sections) {
    // A document of its own for each line: one of them deletes it.
    seen.DOC_ID = `for-${name}`;
    if (line.includes('$DOC_ID')) await createDoc(server, seen.DOC_ID);
    const given = [...line.matchAll(/\$([A-Z]+_ID|KEY)\b/g)].map(([, variable = '']) => {
      assert.ok(seen[variable], `${name} needs $${variable}, which no earlier answer has told`);
      return `${variable}='${seen[variable]}'`;
    });
    // Without the progress that curl shows where its output is no terminal.
    const output = await shell.run(`${given.join('; ')}\n${line} -sS`);
    const [, status = ''] = /^HTTP\/1\.1 (\d+)/m.exec(output) ?? [];
    assert.ok(answers.includes(status), `${name}: ${line}\n${output}`);
    assert.match(output, /^X-Trace-Id: [0-9a-f]{32}\r?$/m);
    for (const [, member = '', id = ''] of output.matchAll(/"(order_id|job_id)":"([^"]+)"/g)) {
      seen[member.toUpperCase()] = id;
    }
  }
});
