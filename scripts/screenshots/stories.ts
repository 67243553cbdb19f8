import type { Locator, Page } from 'playwright-core';

/** A panel's story up to the moment that is worth a picture. */
export type Story = {
  /** The panel's id; `start` is the top of the page. */
  readonly name: string;
  /** What the picture shows, in a sentence for `docs/page.md` and for whoever can't see it. */
  readonly shows: string;
  play(panel: Locator, page: Page): Promise<void>;
};

/** In the order of the page; the later ones show what the earlier ones have left behind. */
export const stories: readonly Story[] = [
  {
    name: 'start',
    shows: 'The top of the page: what 409, 412, 428 and 304 are for.',
    async play() {},
  },
  {
    name: 'send-twice',
    shows: 'One order sent five times at once under one key: one row, one answer five times, four of them replays.',
    async play(panel) {
      await panel.getByRole('slider').fill('5');
      await press(panel, 'Send');
      await panel.getByText(/^1 new row/).waitFor();
    },
  },
  {
    name: 'two-editors',
    shows: 'Two people save at once: one is told 200, the other 412, with who was faster and the difference.',
    async play(panel) {
      await press(panel, 'Open a document in both');
      await press(panel, 'Type into both');
      await press(panel, 'Save both at once');
      await panel.getByText(/^412: somebody was faster/).waitFor();
    },
  },
  {
    name: 'ask-a-model',
    shows:
      'The stream of a job was cut and went on behind the last event; the ledger has one hold, one release, one charge.',
    async play(panel) {
      await during(panel.getByLabel('What to ask'), '[[slow:4000]] [[tokens:60]]', async () => {
        await panel.getByLabel(/^Slowly/).uncheck();
        await press(panel, 'Ask');
        await panel
          .locator('.job-facts')
          .filter({ hasText: /event \d\d$/ })
          .waitFor();
        await press(panel, 'Cut the connection');
        await says(panel, 'Reconnected behind event');
        await says(panel, 'Done. What came over 2 connections is the stored result');
        await panel.getByLabel(/^Slowly/).check();
      });
    },
  },
  {
    name: 'rewrite',
    shows: 'A text was saved while the model rewrote it: the edit stands, and the paid draft is offered beside it.',
    async play(panel) {
      await during(panel.getByLabel('What the model is to do'), '[[slow:9000]] [[tokens:120]]', async () => {
        await panel.getByLabel(/^Slowly/).uncheck();
        await press(panel, 'Let the model rewrite it');
        await says(panel, 'thinks. Change the text now, and save.');
        await panel.getByLabel('The document').fill('Retries are safe when a request has a name.');
        await press(panel, 'Save');
        await says(panel, '412: version 2 was saved while the model wrote.');
        await panel.getByLabel(/^Slowly/).check();
      });
    },
  },
  {
    name: 'stored',
    shows: 'What the panels have left behind: each key with its state, and every movement of credits.',
    async play(panel) {
      await panel.scrollIntoViewIfNeeded();
      await panel.getByText('answer stored').first().waitFor();
      await panel.locator('tr[data-kind]').first().waitFor();
    },
  },
  {
    name: 'charts',
    shows: 'What locks, versions, keys and tags cost and save, as npm run bench has measured it.',
    async play(panel, page) {
      await panel.locator('figcaption').first().waitFor();
      await page.waitForFunction(
        'Array.from(document.querySelectorAll("#charts img")).every((image) => image.complete && image.naturalWidth > 0)',
      );
    },
  },
];

const press = (panel: Locator, name: string) => panel.getByRole('button', { name, exact: true }).click();
const says = (panel: Locator, words: string) => panel.locator('.status').filter({ hasText: words }).waitFor();

/** Adds words to an input while something is done: directives to the simulated model are no part of the picture. */
async function during(input: Locator, directives: string, work: () => Promise<void>): Promise<void> {
  const words = await input.inputValue();
  await input.fill(`${words} ${directives}`);
  await work();
  await input.fill(words);
}
