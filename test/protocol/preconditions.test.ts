import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseTagList, type TagList } from '../../src/protocol/entity-tag.ts';
import { judgeConditions, type Verdict } from '../../src/protocol/preconditions.ts';

const current = { opaque: 'v2', weak: true };
const list = (header: string | undefined): TagList => parseTagList(header === undefined ? [] : [header]);

type Row = [ifMatch: string | undefined, ifNoneMatch: string | undefined, there: Verdict, missing: Verdict];

function check(safe: boolean, rows: Row[]): void {
  for (const [ifMatch, ifNoneMatch, there, missing] of rows) {
    const title = `If-Match: ${ifMatch} / If-None-Match: ${ifNoneMatch}`;
    const conditions = { ifMatch: list(ifMatch), ifNoneMatch: list(ifNoneMatch), safe };
    assert.equal(judgeConditions({ ...conditions, current }), there, title);
    assert.equal(judgeConditions({ ...conditions, current: undefined }), missing, `${title}, nothing there`);
  }
}

test('a conditional read is judged in the order of RFC 9110: If-Match first, then If-None-Match', () => {
  check(true, [
    [undefined, undefined, 'proceed', 'proceed'],
    [undefined, '"v2"', 'not_modified', 'proceed'],
    [undefined, 'W/"v2"', 'not_modified', 'proceed'],
    [undefined, '"v1", "v2"', 'not_modified', 'proceed'],
    [undefined, '"v1"', 'proceed', 'proceed'],
    [undefined, '*', 'not_modified', 'proceed'],
    [undefined, '"*"', 'proceed', 'proceed'],
    [undefined, 'v2', 'proceed', 'proceed'],
    [undefined, '*, "v2"', 'proceed', 'proceed'],
    ['"v2"', undefined, 'proceed', 'failed'],
    ['"v1"', undefined, 'failed', 'failed'],
    ['*', undefined, 'proceed', 'failed'],
    ['v2', undefined, 'proceed', 'proceed'],
    ['"v2"', '"v2"', 'not_modified', 'failed'],
    ['"v2"', '"v1"', 'proceed', 'failed'],
    ['"v1"', '"v2"', 'failed', 'failed'],
    ['*', '*', 'not_modified', 'failed'],
  ]);
});

test('a conditional write needs a matching If-Match and no match in If-None-Match', () => {
  check(false, [
    [undefined, undefined, 'proceed', 'proceed'],
    ['"v2"', undefined, 'proceed', 'failed'],
    ['W/"v2"', undefined, 'proceed', 'failed'],
    ['"v1", W/"v2"', undefined, 'proceed', 'failed'],
    ['"v1"', undefined, 'failed', 'failed'],
    ['""', undefined, 'failed', 'failed'],
    ['"*"', undefined, 'failed', 'failed'],
    ['*', undefined, 'proceed', 'failed'],
    [undefined, '*', 'failed', 'proceed'],
    [undefined, '"v2"', 'failed', 'proceed'],
    [undefined, '"v1"', 'proceed', 'proceed'],
    ['"v2"', '"v2"', 'failed', 'failed'],
    ['"v2"', '"v1"', 'proceed', 'failed'],
    ['"v1"', '"v1"', 'failed', 'failed'],
  ]);
});

test('a write with a malformed condition never goes through, whatever the other header says', () => {
  check(false, [
    ['', undefined, 'failed', 'failed'],
    ['v2', undefined, 'failed', 'failed'],
    ['"v2"', 'v1', 'failed', 'failed'],
    [undefined, 'w/"v1"', 'failed', 'failed'],
  ]);
});
