import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Locator, Request } from 'playwright-core';
import { testToken } from '../helpers/server.ts';
import { assertAccessible, skip, visitPage } from './visit.ts';

/** The panel's parts by what a reader calls them. */
function partsOf(panel: Locator) {
  return {
    panel,
    button: (name: string) => panel.getByRole('button', { name, exact: true }),
    said: (words: string | RegExp) => panel.locator('.status').filter({ hasText: words }).waitFor(),
    kinds: () => panel.locator('.source-ledger tbody tr').evaluateAll((rows) => rows.map((row) => row.dataset.kind)),
  };
}

test('ask a model: the job outlives cut, reload, lost answers and an absent network, and is paid once', {
  skip,
}, async (t) => {
  const { server, context, page, open } = await visitPage(t, '/#ask-a-model');
  const ask = partsOf(page.locator('#ask-a-model'));
  const jobs = async () => (await server.call('GET /v1/jobs?limit=100')).json.items as { job_id: string }[];
  const submit = async (prompt: string) => {
    await ask.panel.getByLabel(/^Slowly/).uncheck();
    await ask.panel.getByLabel('What to ask').fill(prompt);
    await ask.button('Ask').click();
  };
  const done = /^Done\. What came( over \d connections)? is the stored result, letter for letter\.$/;
  await t.test('cut, reloaded and read in a second tab it is one job, each event once, and one charge', async () => {
    await submit('[[slow:5000]] [[tokens:80]] Tell me.');
    await ask.said('The job is stored and runs.');
    await ask.panel
      .locator('.job-facts')
      .filter({ hasText: /event ([5-9]|\d\d)$/ })
      .waitFor();
    await context.setOffline(true);
    await ask.button('Cut the connection').click();
    await ask.said('No answer, tries again behind the last event.');
    await context.setOffline(false);
    await ask.said(/^Reconnected behind event \d+: nothing lost, nothing twice\.$/);
    const parts = await ask.panel.locator('.connections li').allTextContents();
    const [first, second] = parts.map((part) => part.match(/\d+/g)?.map(Number) ?? []);
    assert.deepEqual(second?.slice(0, 1), first?.slice(-1), parts.join('; '));

    const link = (await ask.panel.getByRole('link', { name: 'Open a second tab' }).getAttribute('href')) ?? '';
    const other = await open(`/${link}`);
    const inOther = partsOf(other.locator('#ask-a-model'));
    await inOther.said('This tab reads the same job, from its first event.');

    await page.reload();
    await ask.said(/^Went on behind event [1-9]\d*\.$/);
    await ask.said(done);
    await inOther.said(done);
    assert.equal(
      await inOther.panel.locator('.answer').textContent(),
      await ask.panel.locator('.answer').textContent(),
    );
    assert.equal((await jobs()).length, 1);
    assert.deepEqual(await ask.kinds(), ['hold', 'release', 'charge']);
    await assertAccessible(page, '#ask-a-model');
    await other.close();
  });

  await t.test('an answer that is lost is asked for again under the same key', async () => {
    const before = (await jobs()).length;
    let lost = 0;
    await page.route('**/v1/jobs', async (route) => {
      if (lost > 0) return await route.continue();
      lost += 1;
      await route.fetch();
      await route.abort();
    });
    await submit('Tell me again.');
    await ask.said(done);
    await page.unroute('**/v1/jobs');
    assert.equal(lost, 1);
    assert.equal((await jobs()).length, before + 1);
    assert.ok((await ask.panel.locator('.exchange .mark', { hasText: 'replayed' }).count()) > 0);
  });

  await t.test('what is asked without a network is done when it is back, once', async () => {
    const before = (await jobs()).length;
    await context.setOffline(true);
    await submit('Are you there?');
    await ask.said('No answer, tries again with the same key.');
    // Gone before the network is back: only what was saved can be gone on with.
    await page.goto('about:blank');
    await context.setOffline(false);
    await open('/#ask-a-model', page);
    await ask.said(done);
    assert.equal((await jobs()).length, before + 1);
    assert.deepEqual(await ask.kinds(), ['hold', 'release', 'charge']);
  });

  await t.test('a job is cancelled once and stays so', async () => {
    await submit('[[slow:60000]] Never end.');
    await ask.said('The job is stored and runs.');
    await ask.button('Cancel').click();
    await ask.said('Cancelled: what was used until then is charged');
    await ask.button('Cancel').click();
    await ask.said('the job has ended before (cancelled), and stays as it is.');
    assert.equal((await jobs())[0] && (await server.call('GET /v1/jobs?status=cancelled')).json.items.length, 1);
  });

  await t.test('402 leaves the key usable: with credits the same intent runs', async () => {
    const poor = { tenant: 'poor', sub: 'zoe', token: await testToken({ tenant: 'poor', scope: 'credits:write' }) };
    await page.route('**/dev/tokens', (route) => route.fulfill({ json: [poor] }));
    const keys: (string | undefined)[] = [];
    const note = (request: Request) => {
      if (request.method() === 'POST' && request.url().endsWith('/v1/jobs')) {
        keys.push(request.headers()['idempotency-key']);
      }
    };
    page.on('request', note);
    await open('/#ask-a-model', page);
    await page.reload();
    await submit('Is there any money?');
    await ask.said('402: the credits do not cover this call.');
    await ask.button('Add credits and ask again').click();
    await ask.said(done);
    page.off('request', note);
    assert.equal(keys.length, 2);
    assert.equal(keys[0], keys[1]);
    await page.unroute('**/dev/tokens');
  });

  await t.test('rewrite: who saves meanwhile wins, and the draft is written over it with its tag', async () => {
    await page.reload();
    const rewrite = partsOf(page.locator('#rewrite'));
    const document = rewrite.panel.getByLabel('The document');
    const begin = async (instruction: string) => {
      await rewrite.panel.getByLabel(/^Slowly/).uncheck();
      await rewrite.panel.getByLabel('What the model is to do').fill(instruction);
      await rewrite.button('Let the model rewrite it').click();
      await rewrite.said('thinks. Change the text now, and save.');
    };

    await begin('[[slow:20000]] [[tokens:100]] Nicer.');
    await document.fill('My own words.');
    await rewrite.button('Save').click();
    await rewrite.said('412: version 2 was saved while the model wrote.');
    assert.equal(await document.inputValue(), 'My own words.');
    const draft = (await rewrite.panel.locator('.offer .mine .text').textContent()) ?? '';
    assert.notEqual(draft, '');
    assert.equal(await rewrite.panel.locator('.offer .theirs .text').textContent(), 'My own words.');
    assert.deepEqual(await rewrite.kinds(), ['hold', 'release', 'charge']);
    await assertAccessible(page, '#rewrite');
    await rewrite.button('Use the draft').click();
    await rewrite.said('The draft was written over version 2, with its tag: now it is version 3.');
    assert.equal(await document.inputValue(), draft);

    // Nobody saves meanwhile, and the page is reloaded: the same key brings the same answer.
    await begin('[[slow:600]] [[tokens:20]] Shorter.');
    await page.reload();
    await rewrite.said('so the model’s is version 4 now.');
    assert.notEqual(await document.inputValue(), draft);
    assert.equal((await rewrite.kinds()).filter((kind) => kind === 'charge').length, 2);

    // What is typed and not saved is left alone.
    await begin('[[slow:600]] [[tokens:20]] Longer.');
    await document.fill('Still typing.');
    await rewrite.said('200: version 5 is the model’s. You have typed meanwhile');
    assert.equal(await document.inputValue(), 'Still typing.');
    await rewrite.button('Save mine over it').click();
    await rewrite.said('now it is version 6.');
    assert.equal(await document.inputValue(), 'Still typing.');
  });
});
