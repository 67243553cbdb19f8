import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Prefer, parsePrefer } from '../../src/protocol/prefer.ts';

const none: Prefer = { returnRepresentation: false };
const wait = (waitSeconds: number): Prefer => ({ waitSeconds, returnRepresentation: false });
const full: Prefer = { returnRepresentation: true };

test('the preferences wait and return are read from Prefer, everything else in it is ignored', () => {
  const cases: [title: string, lines: string[], prefer: Prefer][] = [
    ['no header', [], none],
    ['empty', [''], none],
    ['wait', ['wait=10'], wait(10)],
    ['wait 0', ['wait=0'], wait(0)],
    ['names have no case', ['WAIT=10'], wait(10)],
    ['quoted', ['wait="10"'], wait(10)],
    ['an escape in quotes', ['wait="1\\0"'], wait(10)],
    ['blanks', ['\twait = 10 '], wait(10)],
    ['a parameter', ['wait=10; foo=bar'], wait(10)],
    ['capped', [`wait=${'9'.repeat(400)}`], wait(2_147_483_648)],
    ['return', ['return=representation'], full],
    ['return, other case', ['Return=Representation'], full],
    ['return, quoted', ['return="representation"'], full],
    ['return minimal', ['return=minimal'], none],
    ['return without a value', ['return'], none],
    ['both', ['wait=5, return=representation'], { waitSeconds: 5, returnRepresentation: true }],
    ['both on two lines', ['return=representation', 'wait=5'], { waitSeconds: 5, returnRepresentation: true }],
    ['among others', ['respond-async, foo="a, wait=1; b"; x="return=representation", wait=5'], wait(5)],
    ['an escaped quote does not end the quotes', ['foo="a\\", wait=1", wait=5'], wait(5)],
    ['no blank after the comma', ['foo,wait=5'], wait(5)],
    ['empty members', [',, wait=5,'], wait(5)],
    ['as a parameter of another', ['foo; wait=5; return=representation'], none],
    ['quotes left open', ['foo="a, wait=5'], none],
    ['quotes left open end with the line', ['foo="a', 'wait=5'], wait(5)],
    ['a name that begins alike', ['waiting=5, returned=representation'], none],
    ['no equals sign', ['wait 55'], none],
  ];
  for (const [title, lines, prefer] of cases) assert.deepEqual(parsePrefer(lines), prefer, title);
});

test('a wait that is no number of seconds is no wait', () => {
  for (const value of ['', '=', '=""', '=-1', '=+1', '=1.5', '=1e3', '=0x10', '= 1 2', '=abc', '="1', '=١']) {
    assert.deepEqual(parsePrefer([`wait${value}`]), none, value);
  }
});

test('of a preference that is there twice the first counts, even when it is of no use', () => {
  assert.deepEqual(parsePrefer(['wait=5, wait=9']), wait(5));
  assert.deepEqual(parsePrefer(['wait=5', 'Wait=9']), wait(5));
  assert.deepEqual(parsePrefer(['wait=x, wait=9']), none);
  assert.deepEqual(parsePrefer(['wait, wait=9']), none);
  assert.deepEqual(parsePrefer(['return=minimal, return=representation']), none);
});
