import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { deflateSync, inflateSync } from 'node:zlib';
import { withPalette } from '../../scripts/screenshots/png.ts';
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
  assert.ok(bytes < 3_000_000, `${bytes} bytes`);
});

test('a picture keeps its size and its colours when it gets a palette', () => {
  const small = withPalette(twoPixels());
  assert.deepEqual([small.readUInt32BE(16), small.readUInt32BE(20), small[25]], [2, 1, 3]);
  const [palette, pixels] = [chunkOf(small, 'PLTE'), inflateSync(chunkOf(small, 'IDAT'))];
  const colours = [1, 2].map((at) =>
    palette.subarray((pixels[at] ?? 0) * 3, (pixels[at] ?? 0) * 3 + 3).toString('hex'),
  );
  assert.deepEqual(colours, ['ff0000', '0102f3']);
});

/** 2 × 1, 8 bits RGB: ff0000 and 0102f3, the second by the filter "Sub" as a difference from the first. Checksums are not read. */
function twoPixels(): Buffer {
  const chunk = (type: string, body: Buffer) => {
    const framed = Buffer.alloc(body.length + 12);
    framed.writeUInt32BE(body.length, 0);
    framed.write(type, 4, 'latin1');
    body.copy(framed, 8);
    return framed;
  };
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    chunk('IHDR', Buffer.from('00000002000000010802000000', 'hex')),
    chunk('IDAT', deflateSync(Buffer.from('01ff00000202f3', 'hex'))),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function chunkOf(png: Buffer, type: string): Buffer {
  const at = png.indexOf(type, 0, 'latin1');
  return png.subarray(at + 4, at + 4 + png.readUInt32BE(at - 4));
}
