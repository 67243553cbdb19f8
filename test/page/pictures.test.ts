import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { stories } from '../../scripts/screenshots/stories.ts';

const docs = new URL('../../docs/', import.meta.url);
const page = readFileSync(new URL('page.md', docs), 'utf8');

test('docs/page.md shows every story in three looks, and the pictures are there and not too large', () => {
  let bytes = 0;
  for (const { name, shows } of stories) {
    assert.ok(page.includes(`![${shows}](screenshots/${name}-light.png)`), name);
    for (const look of ['light', 'dark', 'phone']) {
      assert.ok(page.includes(`(screenshots/${name}-${look}.png)`), `${name}-${look}`);
      bytes += readFileSync(new URL(`screenshots/${name}-${look}.png`, docs)).length;
    }
  }
  assert.ok(bytes < 5_000_000, `${bytes} bytes`);
});
