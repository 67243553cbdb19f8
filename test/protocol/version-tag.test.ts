import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseTagList } from '../../src/protocol/entity-tag.ts';
import { formatVersionTag, versionOfTag, versionTag } from '../../src/protocol/version-tag.ts';

const version = (header: string, id = 'doc', t = 'q7') => {
  const list = parseTagList([header]);
  return list.kind === 'tags' ? versionOfTag(list.tags[0]!, id, t) : assert.fail(header);
};

test('a version tag names id, version and tenant, and is weak', () => {
  assert.equal(formatVersionTag('doc', 7, 'q7'), 'W/"doc-v7.q7"');
  assert.deepEqual(versionTag('doc', 7, 'q7'), { opaque: 'doc-v7.q7', weak: true });
});

test('a version tag gives its version back, weak or strong', () => {
  assert.equal(version('W/"doc-v7.q7"'), 7);
  assert.equal(version('"doc-v7.q7"'), 7);
  assert.equal(version('"a-v2-v31.q7"', 'a-v2'), 31);
  assert.equal(version('"doc-v2147483647.q7"'), 2_147_483_647);
});

test('what is not exactly a version tag of this thing and tenant names no version', () => {
  for (const opaque of [
    '',
    '*',
    'doc',
    'doc-v',
    'doc-v.q7',
    'doc-v7',
    'doc-v07.q7',
    'doc-v0.q7',
    'doc-v-7.q7',
    'doc-v+7.q7',
    'doc-v7e1.q7',
    'doc-v7.0.q7',
    'DOC-v7.q7',
    'doc-V7.q7',
    'doc-v7.Q7',
    'doc-v7.q8',
    'doc-v7.q7x',
    'xdoc-v7.q7',
    'other-v7.q7',
    'doc-v2147483648.q7',
    'doc-v99999999999.q7',
    `doc-v${'9'.repeat(10_000)}.q7`,
  ]) {
    assert.equal(version(`"${opaque}"`), undefined, opaque.slice(0, 40));
  }
  // Head and tail may not share a character.
  assert.equal(versionOfTag(versionTag('a', 1, 'q7'), 'a-v1.q7', ''), undefined);
  assert.equal(versionOfTag({ opaque: 'a-v.q7', weak: true }, 'a', 'v.q7'), undefined);
});
