import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { skip, visitPage } from './visit.ts';

async function shell(line: string): Promise<string> {
  const child = spawn('sh', ['-c', line], { stdio: ['ignore', 'pipe', 'ignore'] });
  return await text(child.stdout);
}

test('send twice: one row, replays, 409 while the first runs, 409 for another body, and the other tenant apart', {
  skip,
}, async (t) => {
  const { server, page, context } = await visitPage(t, '/#send-twice');
  const panel = page.locator('#send-twice');
  const press = (name: string) => panel.getByRole('button', { name, exact: true }).click();
  const said = panel.locator('.status');
  const exchange = (status: number) => panel.locator(`.exchange[data-status="${status}"]`);

  await t.test('five copies at once are one order', async () => {
    await panel.getByRole('slider').fill('5');
    await press('Send');
    await panel.getByText(/^1 new row in the orders of acme: ord_/).waitFor();
    assert.match((await said.textContent()) ?? '', /^5 answers; 4 are replays/);
    assert.equal(await panel.locator('.copies .mark').count(), 4);
    const made = await panel.locator('.copies td:last-child').allTextContents();
    assert.equal(new Set(made).size, 1);
    assert.equal((await server.call('GET /v1/orders')).json.items.length, 1);
  });

  await t.test('the curl line of an exchange does the same again in a shell', async () => {
    const sent = exchange(201).first();
    await sent.locator('summary').click();
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await sent.getByRole('button', { name: 'Copy as curl' }).click();
    await sent.getByRole('button', { name: 'Copied' }).waitFor();
    const answer = await shell((await page.evaluate('navigator.clipboard.readText()')) as string);
    assert.match(answer, /^HTTP\/1\.1 201/);
    assert.match(answer, /idempotent-replayed: true/i);
    assert.equal((await server.call('GET /v1/orders')).json.items.length, 1);
  });

  await t.test('another body under the same key is refused, and it is said which part differs', async () => {
    await press('Change the body, same key');
    await panel.getByText(/^409: this key stands for another request \(what differs: body\)/).waitFor();
    await panel.getByText('No new rows in the orders of acme.').waitFor();
  });

  await t.test('the other tenant has a row of its own under the same key', async () => {
    await press('As globex, same key');
    await panel.getByText(/^1 new row in the orders of globex: ord_/).waitFor();
    assert.equal(await panel.locator('.copies .mark').count(), 0);
  });

  await t.test('one after the other, the copies are replays', async () => {
    await press('New key');
    await panel.getByRole('radio', { name: 'one after the other' }).check();
    await panel.getByRole('slider').fill('2');
    await press('Send');
    await panel.getByText(/^2 answers; 1 is a replay/).waitFor();
    await panel.getByText(/^1 new row/).waitFor();
  });

  await t.test('while a slow first one runs, its copies are told 409 at once, and in the end its answer', async () => {
    await panel.getByRole('radio', { name: 'all at once' }).check();
    await panel.getByRole('radio', { name: /^a rewrite/ }).check();
    await press('Send');
    await panel.getByText(/1 of them was told 409 first/).waitFor();
    await panel.getByText('The document is at version 2: written once.').waitFor();
    assert.ok((await exchange(409).count()) >= 2);
  });

  await t.test('a copy that stops at its 409 says that it was not run, and nothing is run by it', async () => {
    await press('New key');
    await panel.getByRole('radio', { name: 'hear of it, and stop' }).check();
    await press('Send');
    await panel.getByText(/^409: the first copy with this key still runs, so this one was not run as well/).waitFor();
    await panel.getByText('The document is at version 2: written once.').waitFor();
    assert.equal(await panel.locator('.copies .code').count(), 2, 'one answer for each copy');
  });

  await t.test('a copy that would rather wait is held, and hears no 409', async () => {
    await press('New key');
    await panel.getByRole('radio', { name: /^wait for its answer/ }).check();
    await press('Send');
    await panel.getByText(/^2 answers; 1 is a replay: the stored first answer again\.$/).waitFor();
    await panel.getByText('The document is at version 2: written once.').waitFor();
  });
});
