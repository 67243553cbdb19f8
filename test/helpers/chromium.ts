import type { TestContext } from 'node:test';
import { type Browser, type BrowserContext, chromium } from 'playwright-core';
import { findProgram } from './program.ts';

/** The path of Chromium, or undefined. */
export const chromiumPath = findProgram('chromium');

/** Starts Debian's Chromium without a head and without a word to the outside. */
export async function launchChromium(): Promise<Browser> {
  return await chromium.launch({
    executablePath: chromiumPath as string,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
    // Whoever starts it ends it.
    handleSIGINT: false,
    handleSIGTERM: false,
    handleSIGHUP: false,
  });
}

/** Starts Chromium for a test, with which it ends. */
export async function startChromium(t: TestContext): Promise<Browser> {
  const browser = await launchChromium();
  t.after(() => browser.close());
  return browser;
}

/** One browser profile with its own cache. */
export async function newProfile(t: TestContext): Promise<BrowserContext> {
  return await (await startChromium(t)).newContext();
}
