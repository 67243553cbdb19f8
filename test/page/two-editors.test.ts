import assert from 'node:assert/strict';
import { test } from 'node:test';
import { skip, visitPage } from './visit.ts';

test('two editors: 412 tells who was faster, mine goes on top, 428 without a tag, and * loses an edit', {
  skip,
}, async (t) => {
  const { page } = await visitPage(t, '/#two-editors');
  const panel = page.locator('#two-editors');
  const button = (name: string) => panel.getByRole('button', { name, exact: true });
  const left = panel.getByRole('region', { name: 'Left editor' });
  const right = panel.getByRole('region', { name: 'Right editor' });
  const exchange = (status: number) => panel.locator(`.exchange[data-status="${status}"]`);

  await t.test('both save what they have read: one 200, one 412 with the difference', async () => {
    await button('Open a document in both').click();
    await left.getByRole('textbox').fill('Monday: tell the press\nTuesday: test the payment page\nFriday: launch');
    await right
      .getByRole('textbox')
      .fill('Monday: write the announcement\nTuesday: test the payment page\nSunday: launch');
    await left.getByRole('button', { name: 'Save' }).click();
    await left.getByText('200: saved as version 2.').waitFor();
    await right.getByRole('button', { name: 'Save' }).click();
    await right.getByText(/412: somebody was faster\. alice saved version 2/).waitFor();
    assert.equal(await right.locator('.diff .removed').filter({ hasText: 'Monday: tell the press' }).count(), 1);
    assert.equal(await right.locator('.diff .added').filter({ hasText: 'Sunday: launch' }).count(), 1);
    assert.match(await right.getByRole('textbox').inputValue(), /Sunday/);
  });

  await t.test('mine goes on top of theirs, and both edits stand', async () => {
    await right.getByRole('button', { name: 'Apply mine on top' }).click();
    await right.getByText('Version 3: both edits are in it.').waitFor();
    const both = 'Monday: tell the press\nTuesday: test the payment page\nSunday: launch';
    assert.equal(await right.getByRole('textbox').inputValue(), both);
  });

  await t.test('reading again what has not changed is a 304', async () => {
    await right.getByRole('button', { name: 'Read again' }).click();
    await right.getByText('Read version 3.').or(right.getByText(/^304/)).waitFor();
    await right.getByRole('button', { name: 'Read again' }).click();
    await right.getByText('304: version 3 is the newest').waitFor();
    assert.ok((await exchange(304).count()) > 0);
    await left.getByRole('button', { name: 'Read again' }).click();
    await left.getByText('Read version 3.').waitFor();
  });

  await t.test('both save at once: exactly one of them is 412', async () => {
    await button('Type into both').click();
    await button('Save both at once').click();
    await panel.getByText(/^412: somebody was faster/).waitFor();
    assert.equal(await panel.getByText('200: saved as version 4.').count(), 1);
  });

  await t.test('without If-Match nothing is written: 428', async () => {
    await panel.getByRole('radio', { name: 'nothing' }).check();
    await left.getByRole('button', { name: 'Save' }).click();
    await left.getByText('428: say which version you mean to change').waitFor();
    assert.equal(await exchange(428).count(), 1);
  });

  await t.test('with * both are told 200, and the panel says whose edit is gone', async () => {
    for (const editor of [left, right]) await editor.getByRole('button', { name: 'Read again' }).click();
    await panel.getByRole('radio', { name: '*' }).check();
    await left.getByText('version 4').waitFor();
    await right.getByText('version 4').waitFor();
    await button('Type into both').click();
    await button('Save both at once').click();
    await panel.getByText(/^Lost: the (left|right) editor’s “(Monday|Friday): /).waitFor();
    assert.equal(await panel.getByText(/^200: saved as version [56]\.$/).count(), 2);
  });
});
