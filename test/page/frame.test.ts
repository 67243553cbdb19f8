import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Browser } from 'playwright-core';
import { assertAccessible, skip, visitPage } from './visit.ts';

const panels = ['send-twice', 'two-editors', 'ask-a-model', 'rewrite', 'stored', 'charts'];

test('the page: what is stored, deep links, keyboard, both schemes and 390 px, and tokens to paste', {
  skip,
}, async (t) => {
  const { server, page, context } = await visitPage(t, '/#stored');
  const stored = page.locator('#stored');

  await t.test('a deep link leads to its panel, and the bar says so', async () => {
    await page.locator('#stored:focus').waitFor();
    assert.equal(await page.locator('#nav [aria-current]').textContent(), 'What is stored');
    assert.deepEqual(await page.locator('.panel').evaluateAll((all) => all.map(({ id }) => id)), panels);
  });

  await t.test(
    'a key that this tab has sent is there with its state, and the ledger’s second look is a 304',
    async () => {
      await page.locator('#send-twice').getByRole('button', { name: 'Send', exact: true }).click();
      await page.getByText(/^1 new row/).waitFor();
      await page.locator('#nav').getByText('What is stored').click();
      const row = stored.locator('tr[data-state="done"]').filter({ hasText: 'POST /v1/orders' });
      await row.waitFor();
      assert.match((await row.textContent()) ?? '', /answer stored 2011/);
      await stored.getByText(/Answered with 304, .*: [1-9]/).waitFor();
      assert.ok((await stored.locator('.exchange[data-status="304"]').count()) > 0);
      await page.reload();
      await row.waitFor();
    },
  );

  await t.test('what is off the screen or switched off is not asked for', async () => {
    await page.clock.install();
    await page.reload();
    await stored.locator('tr[data-state="done"]').first().waitFor();
    const asked: string[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    /** What the page asks for within a minute, and then an answer that comes behind it. */
    const inAMinute = async () => {
      asked.length = 0;
      await page.clock.fastForward(60_000);
      await page.evaluate('fetch("/healthz").then((answer) => answer.text())');
      return [...new Set(asked)];
    };
    /** A look that had begun may still ask for something; after it, three minutes in a row are quiet. */
    const assertQuiet = async (why: string) => {
      for (let tries = 0; tries < 20 && (await inAMinute()).length > 1; tries += 1);
      const minutes = [await inAMinute(), await inAMinute(), await inAMinute()];
      assert.deepEqual(minutes, [['/healthz'], ['/healthz'], ['/healthz']], why);
    };
    await page.evaluate('scrollTo(0, 0)');
    await stored.getByText(/Looks so far/).waitFor();
    await assertQuiet('off the screen');
    await stored.scrollIntoViewIfNeeded();
    await page.waitForRequest(/\/v1\/ledger/);
    await stored.getByRole('checkbox', { name: 'Look every two seconds' }).uncheck();
    await assertQuiet('switched off');
  });

  await t.test('the charts are there, with words below each', async () => {
    await page.locator('#nav').getByText('The benchmark').click();
    const images = page.locator('#charts img');
    await page.locator('#charts figure').nth(5).waitFor();
    for (const image of await images.all()) {
      await image.scrollIntoViewIfNeeded();
      await image.evaluate((node) => (node as unknown as { decode(): Promise<void> }).decode());
    }
    assert.equal(await page.locator('#charts figcaption').count(), await images.count());
  });

  await t.test('the first panel is worked by keys alone', async () => {
    await page.reload();
    await page.locator('html[data-ready]').waitFor();
    await page.locator('#send-twice').getByLabel('Item').focus();
    for (let presses = 0; presses < 12; presses += 1) {
      await page.keyboard.press('Tab');
      const focused = await page.locator(':focus').textContent();
      if (focused === 'Send') break;
    }
    await page.keyboard.press('Enter');
    await page.getByText(/^1 new row/).waitFor();
    assert.equal(await page.locator(':focus').textContent(), 'Send', 'the focus stays where it was');
    await page.locator('#send-twice .exchange summary').first().focus();
    await page.keyboard.press('Enter');
    await page.locator('#send-twice .exchange details[open] .half').first().waitFor();
  });

  await t.test('axe-core finds nothing serious, light and dark', async () => {
    await assertAccessible(page);
    await page.emulateMedia({ colorScheme: 'dark' });
    // The scheme changes nothing but colours.
    await assertAccessible(page, 'html', ['color-contrast']);
  });

  await t.test('at 390 px nothing sticks out', async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    await page.locator('#charts').scrollIntoViewIfNeeded();
    const [content, window] = (await page.evaluate('[document.documentElement.scrollWidth, innerWidth]')) as number[];
    assert.equal(content, window);
  });

  await t.test('where no tokens are offered, one can be pasted', async () => {
    const offered = (await (await fetch(`${server.url}/dev/tokens`)).json()) as { token: string }[];
    const tab = await context.newPage();
    await tab.route('**/dev/tokens', (route) => route.fulfill({ status: 404, body: '{}' }));
    await tab.goto(server.url);
    await tab.getByLabel('Token', { exact: true }).fill('no token');
    await tab.getByRole('button', { name: 'Use them' }).click();
    await tab.getByText('This is no token').waitFor();
    await tab.getByLabel('Token', { exact: true }).fill(offered[1]?.token ?? '');
    await tab.getByRole('button', { name: 'Use them' }).click();
    await tab.getByText('You are bob of the tenant globex.').waitFor();
    await assertAccessible(tab, '#tenants');
    await tab.close();
  });

  await t.test('the page’s policy lets no script in but its own file', async () => {
    // A profile of its own: here the violation is what is wanted.
    const tab = await (await (context.browser() as Browser).newContext()).newPage();
    await tab.goto(server.url);
    const refused = await tab.evaluate(`new Promise((resolve) => {
      document.addEventListener('securitypolicyviolation', (event) => resolve(event.effectiveDirective), { once: true });
      const script = document.createElement('script');
      script.textContent = 'globalThis.isIn = true';
      document.head.append(script);
      setTimeout(() => resolve('none'), 2000);
    })`);
    assert.equal(refused, 'script-src-elem');
    await tab.close();
  });
});
