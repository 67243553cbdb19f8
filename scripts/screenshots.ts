import { copyFileSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { chromiumPath, launchChromium } from '../test/helpers/chromium.ts';
import { startHost } from './screenshots/host.ts';
import { type Story, stories } from './screenshots/stories.ts';

const usage = `Usage: npm run screenshots [-- options]

Starts a server of its own, plays each panel's story of the page at / in Chromium, and writes a picture of its telling moment
in three looks: docs/screenshots/<panel>-light.png, -dark.png and -phone.png. Look at them before they are committed.

  --only a,b     these alone; all stories are played, as later ones show what earlier ones have left behind
  --seed S       a whole number for the keys (default 1); ids, times and the model's words differ from run to run
  --write DIR    where to (default docs/screenshots)
  --help

Pictures: ${stories.map(({ name }) => name).join(', ')}.
`;

const looks = [
  { name: 'light', colorScheme: 'light', width: 1_120 },
  { name: 'dark', colorScheme: 'dark', width: 1_120 },
  { name: 'phone', colorScheme: 'light', width: 390 },
] as const;

/** The height of a screen, for what is not one panel. */
const screenHeight = 720;

process.exitCode = await main();

async function main(): Promise<number> {
  const options = readArguments();
  if (typeof options === 'string') {
    process.stderr.write(`${options}\n\n${usage}`);
    return 2;
  }
  if (options.help) {
    process.stdout.write(usage);
    return 0;
  }
  if (chromiumPath === undefined) {
    process.stderr.write('no Chromium: install it (Debian: apt-get install chromium) and run this again\n');
    return 1;
  }
  const interrupted = new Promise<'interrupted'>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve('interrupted'));
  });
  const host = await startHost();
  let browser: Browser | undefined;
  try {
    browser = await launchChromium();
    const taken = takeAll(browser, host.url, host.folder, options);
    // After an interrupt the browser is closed below, and what was going on in it fails unseen.
    taken.catch(() => {});
    const end = await Promise.race([taken, interrupted]);
    if (end === 'interrupted') {
      process.stderr.write('interrupted, nothing is written\n');
      return 130;
    }
    mkdirSync(options.write, { recursive: true });
    for (const name of end) copyFileSync(join(host.folder, name), join(options.write, name));
    const bytes = end.reduce((sum, name) => sum + statSync(join(options.write, name)).size, 0);
    process.stdout.write(`${end.length} pictures, ${Math.round(bytes / 1_000)} kB, in ${options.write}\n`);
    return 0;
  } finally {
    await browser?.close();
    await host.stop();
  }
}

/** Plays the stories in one tab; resolves with the names of the pictures in the folder. */
async function takeAll(
  browser: Browser,
  url: string,
  folder: string,
  { only, seed }: { readonly only: readonly string[] | undefined; readonly seed: number },
): Promise<string[]> {
  const context = await browser.newContext({ reducedMotion: 'reduce', locale: 'en-GB', timezoneId: 'UTC' });
  await context.addInitScript({ content: seededKeys(seed) });
  // A story in a page that has thrown is no picture of it.
  const faults: Error[] = [];
  context.on('weberror', (fault) => faults.push(fault.error()));
  const page = await context.newPage();
  await page.setViewportSize({ width: looks[0].width, height: screenHeight });
  await page.goto(url);
  await page.locator('html[data-ready]').waitFor();
  const names: string[] = [];
  for (const story of stories) {
    await story.play(page.locator(`#${story.name}`), page);
    // Neither focus nor pointer in the picture.
    await page.evaluate('document.activeElement?.blur()');
    await page.mouse.move(0, 0);
    if (faults[0] !== undefined) throw faults[0];
    if (only !== undefined && !only.includes(story.name)) continue;
    process.stderr.write(`${story.name}\n`);
    for (const look of looks) names.push(await take(page, story, look, folder));
    await page.setViewportSize({ width: looks[0].width, height: screenHeight });
  }
  return names;
}

async function take(page: Page, { name }: Story, look: (typeof looks)[number], folder: string): Promise<string> {
  const { width, colorScheme } = look;
  const file = `${name}-${look.name}.png`;
  const path = join(folder, file);
  await page.emulateMedia({ colorScheme });
  await page.setViewportSize({ width, height: screenHeight });
  if (name === 'start') {
    await page.evaluate('scrollTo(0, 0)');
    writeFileSync(path, await page.screenshot());
    return file;
  }
  const panel = page.locator(`#${name}`);
  // The bar stays at the top: over the last panel it would be in the way.
  await page.evaluate('document.querySelector(".top").style.position = "static"');
  const { height = 0 } = (await panel.boundingBox()) ?? {};
  await page.setViewportSize({ width, height: Math.ceil(height) + 160 });
  await panel.evaluate('(element) => element.scrollIntoView()');
  writeFileSync(path, await panel.screenshot());
  return file;
}

/**
 * Runs in the page before its script: the same keys for the same seed. A text, as a function would name helpers of tsx that the
 * page does not have.
 */
function seededKeys(seed: number): string {
  return `{
  let state = ${seed};
  // mulberry32
  const random = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  const digits = (count) => Array.from({ length: count }, () => Math.floor(random() * 16).toString(16)).join('');
  crypto.randomUUID = () => [digits(8), digits(4), '4' + digits(3), '8' + digits(3), digits(12)].join('-');
}`;
}

function readArguments() {
  try {
    const { values } = parseArgs({
      options: {
        only: { type: 'string' },
        seed: { type: 'string', default: '1' },
        write: { type: 'string', default: fileURLToPath(new URL('../docs/screenshots', import.meta.url)) },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    const seed = Number(values.seed);
    if (!Number.isInteger(seed)) return `--seed takes a whole number, not ${values.seed}`;
    const only = values.only?.split(',').map((name) => name.trim());
    const unknown = only?.find((name) => !stories.some((story) => story.name === name));
    if (unknown !== undefined) return `--only: there is no ${unknown}; --help lists them`;
    return { ...values, seed, only };
  } catch (error) {
    return (error as Error).message;
  }
}
