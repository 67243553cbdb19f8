import assert from 'node:assert/strict';
import { test } from 'node:test';
import { differingParts, fingerprint, type Part, type RequestParts } from '../../src/idempotency/fingerprint.ts';

const request: RequestParts = {
  method: 'POST',
  path: '/v1/orders',
  query: '',
  media_type: 'application/json',
  if_match: undefined,
  if_none_match: undefined,
  body: '{"cents":1}',
};

test('the same parts have the same fingerprint, and it is short whatever the body is', () => {
  const long = fingerprint({ ...request, body: `"${'x'.repeat(100_000)}"` });
  assert.deepEqual(fingerprint(request), fingerprint({ ...request }));
  assert.equal(long.length, fingerprint(request).length);
  assert.ok(long.length <= 128);
});

test('each part that differs is named, and no other', () => {
  const changed: Record<Part, string> = {
    method: 'PUT',
    path: '/v1/other',
    query: 'a=1',
    media_type: 'application/merge-patch+json',
    if_match: '"a"',
    if_none_match: '*',
    body: '{"cents":2}',
  };
  for (const part of Object.keys(changed) as Part[]) {
    const other = fingerprint({ ...request, [part]: changed[part] });
    assert.deepEqual(differingParts(fingerprint(request), other), [part]);
    assert.deepEqual(differingParts(other, fingerprint(request)), [part]);
  }
  assert.deepEqual(differingParts(fingerprint(request), fingerprint(changed))?.sort(), Object.keys(changed).sort());
  assert.deepEqual(differingParts(fingerprint(request), fingerprint(request)), []);
});

test('a part that is absent differs from one that is empty: no body, an empty text, {} and null are four things', () => {
  const bodies = [undefined, '', '{}', 'null'].map((body) => fingerprint({ ...request, body }));
  for (const [i, one] of bodies.entries()) {
    for (const [j, other] of bodies.entries()) assert.deepEqual(differingParts(one, other), i === j ? [] : ['body']);
  }
  const tags = [undefined, '', '*'].map((if_match) => fingerprint({ ...request, if_match }));
  assert.equal(new Set(tags.map(String)).size, 3);
});

test('parts do not run into each other: what moves from one to the next makes another fingerprint', () => {
  const one = fingerprint({ ...request, if_match: '"a"', if_none_match: undefined });
  const other = fingerprint({ ...request, if_match: undefined, if_none_match: '"a"' });
  assert.deepEqual(differingParts(one, other), ['if_match', 'if_none_match']);
});

test('lone surrogates and long values are told apart', () => {
  const escaped = fingerprint({ ...request, body: '"\\ud800"' });
  assert.deepEqual(differingParts(escaped, fingerprint({ ...request, body: '"\\ud801"' })), ['body']);
  const path = (end: string) => fingerprint({ ...request, path: `/v1/${'x'.repeat(500)}${end}` });
  assert.deepEqual(differingParts(path('a'), path('b')), ['path']);
  assert.deepEqual(differingParts(path('a'), path('a')), []);
});

test('a fingerprint of another recipe or length is not compared', () => {
  const stored = fingerprint(request);
  assert.equal(differingParts(Buffer.concat([Buffer.from([2]), stored.subarray(1)]), stored), undefined);
  assert.equal(differingParts(stored.subarray(0, -1), stored), undefined);
  assert.equal(differingParts(Buffer.alloc(0), stored), undefined);
});
