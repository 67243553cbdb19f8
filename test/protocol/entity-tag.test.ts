import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type EntityTag, formatTag, matchesTag, parseTagList, weakEquals } from '../../src/protocol/entity-tag.ts';

const strong = (opaque: string): EntityTag => ({ opaque, weak: false });
const weak = (opaque: string): EntityTag => ({ opaque, weak: true });

test('a tag header that was not sent is absent, and `*` alone is any', () => {
  assert.deepEqual(parseTagList([]), { kind: 'absent' });
  for (const line of ['*', ' *', '*\t']) assert.deepEqual(parseTagList([line]), { kind: 'any' }, line);
});

test('a list of entity tags is read member by member', () => {
  const cases: [title: string, lines: string[], tags: EntityTag[]][] = [
    ['one strong', ['"x"'], [strong('x')]],
    ['one weak', ['W/"x"'], [weak('x')]],
    ['the empty tag', ['""'], [strong('')]],
    ['the empty weak tag', ['W/""'], [weak('')]],
    ['two', ['"x", W/"doc-v7"'], [strong('x'), weak('doc-v7')]],
    ['no blank after the comma', ['"x","y"'], [strong('x'), strong('y')]],
    ['tabs and blanks around commas', ['\t"x"\t, \t "y" '], [strong('x'), strong('y')]],
    ['empty members', [',, "x",\t,, "y",,'], [strong('x'), strong('y')]],
    ['two lines', ['"x"', 'W/"y"'], [strong('x'), weak('y')]],
    ['an empty line beside a tag', ['', '"x"'], [strong('x')]],
    ['a comma inside a tag', ['"a,b"'], [strong('a,b')]],
    ['a star inside a tag', ['"*", "a*"'], [strong('*'), strong('a*')]],
    ['W/ inside a tag', ['"W/x"'], [strong('W/x')]],
    ['a backslash is an ordinary character', ['"a\\", "b"'], [strong('a\\'), strong('b')]],
    ['obs-text', ['"\u0080\u00ff"'], [strong('\u0080\u00ff')]],
    ['the first and last of the visible range', ['"!#~"'], [strong('!#~')]],
  ];
  for (const [title, lines, tags] of cases) assert.deepEqual(parseTagList(lines), { kind: 'tags', tags }, title);
});

test('a malformed tag list is invalid as a whole', () => {
  const cases: [title: string, lines: string[]][] = [
    ['empty', ['']],
    ['blanks', [' \t']],
    ['commas only', [' , ,']],
    ['lower-case w', ['w/"x"']],
    ['weak without quotes', ['W/x']],
    ['W/ alone', ['W/']],
    ['a blank after W/', ['W/ "x"']],
    ['W without a slash', ['W"x"']],
    ['unquoted', ['x']],
    ['opened by another character', ['x"', 'xy"']],
    ['weak and opened by another character', ['W/x"']],
    ['unterminated', ['"x']],
    ['one quote', ['"']],
    ['unterminated after a good one', ['"x", "y']],
    ['closed by the next line', ['"a', 'b"']],
    ['single quotes', ["'x'"]],
    ['star and a tag', ['*, "x"']],
    ['a tag and a star', ['"x", *']],
    ['star and a tag on two lines', ['*', '"x"']],
    ['two stars', ['*, *']],
    ['two stars on two lines', ['*', '*']],
    ['star with a comma', ['*,']],
    ['star behind a comma', [',*']],
    ['weak star', ['W/*']],
    ['no comma between', ['"x" "y"']],
    ['nothing between', ['"x""y"']],
    ['a semicolon between', ['"x"; "y"']],
    ['a blank inside', ['"a b"']],
    ['a tab inside', ['"a\tb"']],
    ['a control character inside', ['"a\u0001"']],
    ['DEL inside', ['"a\u007f"']],
    ['beyond latin1', ['"\u0100"']],
    ['a good one before a bad one', ['"x", y']],
    ['15 kB of commas', [','.repeat(15_000)]],
  ];
  for (const [title, lines] of cases) assert.deepEqual(parseTagList(lines), { kind: 'invalid' }, title);
});

test('tags compare weakly and whole: `W/` does not count, case and every character do', () => {
  assert.equal(weakEquals(strong('x'), weak('x')), true);
  assert.equal(weakEquals(strong('x'), strong('X')), false);
  const current = weak('a,b');
  const cases: [line: string, matches: boolean][] = [
    ['"a,b"', true],
    ['W/"a,b"', true],
    ['"x", "a,b"', true],
    ['*', true],
    ['"a", "b"', false],
    ['"A,B"', false],
    ['""', false],
    ['"*"', false],
    ['a,b', false],
  ];
  for (const [line, matches] of cases) {
    assert.equal(matchesTag(parseTagList([line]), current), matches, line);
    assert.equal(matchesTag(parseTagList([line]), undefined), false, `${line} on nothing`);
  }
  assert.equal(matchesTag({ kind: 'absent' }, current), false);
});

test('a tag is written as it is read', () => {
  for (const text of ['"x"', 'W/"x"', '""', 'W/"a,b"']) {
    const list = parseTagList([text]);
    assert.deepEqual(list.kind === 'tags' && list.tags.map(formatTag), [text]);
  }
});
