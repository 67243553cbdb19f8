import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import axe, { type AxeResults } from 'axe-core';
import type { BrowserContext, Page } from 'playwright-core';
import { chromiumPath, newProfile } from '../helpers/chromium.ts';
import { atEnd } from '../helpers/cleanup.ts';
import { startServer, type TestServer, type TestServerOptions } from '../helpers/server.ts';

/** Why a test of the page is skipped, or false. */
export const skip = chromiumPath === undefined ? 'no Chromium' : false;

/** The page of a server, in a browser of its own. */
export type Visit = {
  readonly server: TestServer;
  readonly context: BrowserContext;
  /** The first tab. */
  readonly page: Page;
  /** Another tab of the same profile, or this address in a given one; resolves once the panels are there. */
  open(address?: string, tab?: Page): Promise<Page>;
};

/** Statuses that stories provoke and a network that is off are told in the console as well; they are no faults of the page. */
const expected = /^Failed to load resource: /;

/**
 * Opens the page. The test fails when the page throws, writes an error to its console or does something that its policy forbids.
 * Nothing waits for longer than a slow machine needs.
 */
export async function visitPage(t: TestContext, address = '/', options: TestServerOptions = {}): Promise<Visit> {
  const server = await startServer(t, { offersTokens: true, seedCredits: true, ...options });
  const context = await newProfile(t);
  // Connections that a browser keeps would hold up the server's end; and it must end whatever else has failed.
  atEnd(t, () => context.browser()?.close());
  context.setDefaultTimeout(15_000);
  const faults: string[] = [];
  context.on('console', (message) => {
    if (message.type() === 'error' && !expected.test(message.text())) faults.push(message.text());
  });
  context.on('weberror', (error) => faults.push(String(error.error())));
  const open = async (path = '/', tab?: Page) => {
    const page = tab ?? (await context.newPage());
    await page.goto(server.url + path);
    await page.locator('html[data-ready]').waitFor();
    return page;
  };
  const page = await open(address);
  atEnd(t, () => assert.deepEqual(faults, []));
  return { server, context, page, open };
}

/** Fails with what axe-core finds serious, in the whole page or below a selector; by all of its rules or some. */
export async function assertAccessible(page: Page, selector = 'html', rules?: readonly string[]): Promise<void> {
  // The evaluation goes past the page's policy, which would forbid a script of another origin.
  await page.evaluate(axe.source);
  const options = rules === undefined ? {} : { runOnly: rules };
  const found = (await page.evaluate(`axe.run(${JSON.stringify(selector)}, ${JSON.stringify(options)})`)) as AxeResults;
  const serious = found.violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`);
  assert.deepEqual(serious, []);
}
