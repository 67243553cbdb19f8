import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import test from 'node:test';
import { createMask, stepsOf } from '../scripts/tour/document.ts';
import { openShell } from '../scripts/tour/shell.ts';
import { startServer, testToken } from './helpers/server.ts';

const markdown = await readFile(new URL('../docs/tour.md', import.meta.url), 'utf8');

test('every command of the tour, in order, gives the answer that stands below it', async (t) => {
  const server = await startServer(t, { seedCredits: true, env: { LLM_SIM_LATENCY_MS: '1000' } });
  const scope = 'credits:write';
  const shell = openShell({
    URL: server.url,
    ACME: await testToken({ tenant: 'acme', sub: 'alice', scope }),
    GLOBEX: await testToken({ tenant: 'globex', sub: 'bob', scope }),
  });
  t.after(() => shell.close());
  const mask = createMask();
  const steps = stepsOf(markdown);
  assert.ok(steps.length > 20, 'the tour has its steps');
  for (const step of steps) {
    await t.test(`${step.section}: ${step.command.trim().slice(0, 120)}`, async () => {
      assert.equal(mask(await shell.run(step.command)), step.answer);
    });
  }
});

test('the links of the tour lead to headings that are there', () => {
  const slug = (heading: string) =>
    heading
      .toLowerCase()
      .replace(/[^a-z0-9 -]/g, '')
      .replaceAll(' ', '-');
  const headings = new Set([...markdown.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => slug(heading)));
  const links = [...markdown.matchAll(/\]\(#([^)]+)\)/g)].map(([, anchor]) => anchor as string);
  assert.ok(links.length >= 7);
  for (const anchor of links) assert.ok(headings.has(anchor), `#${anchor} is a heading`);
});
