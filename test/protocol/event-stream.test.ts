import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createEventParser, type IncomingEvent } from '../../src/protocol/event-parser.ts';
import { formatComment, formatEvent, formatRetry } from '../../src/protocol/event-stream.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const parse = (text: string) => createEventParser().push(bytes(text));
const event = (data: string, id = '', name = 'message'): IncomingEvent => ({ id, event: name, data });

test('an event is written as id, name and one data line for each line of its data', () => {
  assert.equal(formatEvent({ id: '3', event: 'delta', data: '{"seq":3}' }), 'id: 3\nevent: delta\ndata: {"seq":3}\n\n');
  assert.equal(formatEvent({ data: '' }), 'data: \n\n');
  assert.equal(formatEvent({ data: 'a\nb\r\nc\rd\n' }), 'data: a\ndata: b\ndata: c\ndata: d\ndata: \n\n');
  assert.equal(formatComment(), ': \n\n');
  assert.equal(formatComment('still\nhere'), ': still\n: here\n\n');
  assert.equal(formatRetry(2_000), 'retry: 2000\n\n');
});

test('an id or name that would break out of its line is not written', () => {
  for (const text of ['a\nb', 'a\r', '\n', 'a\u0000']) {
    assert.throws(() => formatEvent({ id: text, data: '' }), TypeError);
    assert.throws(() => formatEvent({ event: text, data: '' }), TypeError);
  }
});

test('an event stream is read as the HTML standard says', () => {
  const cases: [title: string, text: string, events: IncomingEvent[]][] = [
    ['nothing', '', []],
    ['one event', 'data: x\n\n', [event('x')]],
    ['no blank line at the end: the event is dropped', 'data: x\n', []],
    ['several lines of data', 'data: YHOO\ndata: +2\ndata: 10\n\n', [event('YHOO\n+2\n10')]],
    ['a comment', ': test stream\n\ndata: x\n\n', [event('x')]],
    ['a comment inside an event', 'data: x\n:y\ndata: z\n\n', [event('x\nz')]],
    ['empty data', 'data\n\ndata\ndata\n\ndata:', [event(''), event('\n')]],
    [
      'only the first blank is dropped',
      'data:test\n\ndata: test\n\ndata:  test\n\n',
      [event('test'), event('test'), event(' test')],
    ],
    ['a tab is kept', 'data:\tx\n\n', [event('\tx')]],
    ['a colon in the value', 'data: a:b: c\n\n', [event('a:b: c')]],
    ['a name', 'event: add\ndata: 7\n\n', [event('7', '', 'add')]],
    ['the last name counts', 'event: a\nevent: b\ndata: 7\n\n', [event('7', '', 'b')]],
    ['a name is for one event', 'event: a\ndata: 1\n\ndata: 2\n\n', [event('1', '', 'a'), event('2')]],
    ['a name without data is forgotten', 'event: a\n\ndata: 2\n\n', [event('2')]],
    ['an empty name is message', 'event:\ndata: 1\n\n', [event('1')]],
    ['an id stays', 'id: 1\ndata: a\n\ndata: b\n\n', [event('a', '1'), event('b', '1')]],
    ['an id without data counts', 'id: 1\n\ndata: b\n\n', [event('b', '1')]],
    ['an empty id resets', 'id: 1\ndata: a\n\nid\ndata: b\n\n', [event('a', '1'), event('b')]],
    ['an id with NUL is ignored', 'id: 1\ndata: a\n\nid: 2\u0000\ndata: b\n\n', [event('a', '1'), event('b', '1')]],
    ['an id after the data', 'data: a\nid: 1\n\n', [event('a', '1')]],
    ['unknown fields and other cases', 'foo: 1\nData: 2\n data: 3\ndata: 4\n\n', [event('4')]],
    ['CRLF', 'id: 1\r\ndata: a\r\ndata: b\r\n\r\n', [event('a\nb', '1')]],
    ['CR', 'id: 1\rdata: a\r\r', [event('a', '1')]],
    ['mixed line ends', 'data: a\r\ndata: b\n\r\ndata: c\r\n\r', [event('a\nb'), event('c')]],
    ['LF after CR LF is a blank line', 'data: a\r\n\n', [event('a')]],
    ['a BOM at the start', '\ufeffdata: a\n\n', [event('a')]],
    ['a second BOM is text', '\ufeff\ufeffdata: a\n\ndata: b\n\n', [event('b')]],
    ['beyond ASCII', 'data: é漢😀\n\n', [event('é漢😀')]],
  ];
  for (const [title, text, events] of cases) {
    assert.deepEqual(parse(text), events, title);
    const parser = createEventParser();
    const oneByOne = Array.from(bytes(text)).flatMap((byte) => parser.push(Uint8Array.of(byte)));
    assert.deepEqual(oneByOne, events, `${title}, byte by byte`);
  }
});

test('an event whose CRLF is cut in two ends once', () => {
  const parser = createEventParser();
  assert.deepEqual(parser.push(bytes('data: a\r')), []);
  assert.deepEqual(parser.push(bytes('\n\r')), [event('a')]);
  assert.deepEqual(parser.push(bytes('\ndata: b\n\n')), [event('b')]);
});

test('the reader knows what to reconnect with: the id of the last complete block and the wait asked for', () => {
  const parser = createEventParser();
  assert.deepEqual([parser.lastEventId, parser.retryMs], ['', undefined]);
  parser.push(bytes('retry: 2000\nid: 4\ndata: a\n\nid: 5\nda'));
  assert.deepEqual([parser.lastEventId, parser.retryMs], ['4', 2_000]);
  for (const value of ['', '-1', '1.5', 'soon', '1e3']) parser.push(bytes(`\nretry: ${value}\n`));
  assert.equal(parser.retryMs, 2_000);
  parser.push(bytes(`retry:${'9'.repeat(30)}\n`));
  assert.equal(parser.retryMs, 2_147_483_647);
});

test('an event that outgrows the buffer ends the parser, many that fit do not', () => {
  const fits = createEventParser({ maxEventChars: 20 });
  for (let i = 0; i < 100; i++) {
    assert.equal(fits.push(bytes(': a comment of 20 ch\ndata: 12345678\n\n')).length, 1);
  }
  for (const text of [
    'x'.repeat(21),
    'data: 123456789012345',
    'data: 12345\ndata: 67890',
    ':'.repeat(21),
    'data\n'.repeat(6),
  ]) {
    assert.throws(() => createEventParser({ maxEventChars: 20 }).push(bytes(text)), RangeError, text);
  }
  const cut = createEventParser({ maxEventChars: 20 });
  assert.throws(() => {
    for (let i = 0; i < 21; i++) cut.push(bytes('x'));
  }, RangeError);
});

test('what is written is read back, in any cut of its bytes', () => {
  const written = [
    formatRetry(2_000),
    formatEvent({ id: '1', event: 'status', data: '{"seq":1}' }),
    formatComment(),
    formatEvent({ id: '2', event: 'delta', data: 'é漢😀\n\nend' }),
  ].join('');
  const all = bytes(written);
  for (let cut = 0; cut <= all.length; cut++) {
    const parser = createEventParser();
    const events = [...parser.push(all.subarray(0, cut)), ...parser.push(all.subarray(cut))];
    assert.deepEqual(events, [event('{"seq":1}', '1', 'status'), event('é漢😀\n\nend', '2', 'delta')], `cut at ${cut}`);
  }
});
