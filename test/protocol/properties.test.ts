import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { canonicalize } from '../../src/protocol/canonical-json.ts';
import { formatCursor, parseCursor } from '../../src/protocol/cursor.ts';
import { type EntityTag, formatTag, parseTagList } from '../../src/protocol/entity-tag.ts';
import { createEventParser } from '../../src/protocol/event-parser.ts';
import { formatEvent } from '../../src/protocol/event-stream.ts';
import { formatIdempotencyKey, parseIdempotencyKey } from '../../src/protocol/idempotency-key.ts';
import { parseJson, parseJsonText } from '../../src/protocol/json.ts';
import { findJsonFault } from '../../src/protocol/json-fault.ts';
import { applyMergePatch } from '../../src/protocol/merge-patch.ts';
import { judgeConditions } from '../../src/protocol/preconditions.ts';
import { parsePrefer } from '../../src/protocol/prefer.ts';
import { formatRetryAfter, parseRetryAfter, parseRetryAfterMs } from '../../src/protocol/retry-after.ts';
import { codePoints, hasForbiddenText, toStorableText } from '../../src/protocol/text.ts';
import { formatTraceparent, parseTraceparent } from '../../src/protocol/trace-context.ts';
import { formatId, formatUuidV7, parseId } from '../../src/protocol/uuid.ts';
import { formatVersionTag, versionOfTag } from '../../src/protocol/version-tag.ts';

/** Records that are deepEqual to object literals. */
const plain = { noNullPrototype: true };

/** Text of any bytes, rich in those that mean something to some parser. */
const headerText = fc.string({
  unit: fc.oneof(
    {
      weight: 3,
      arbitrary: fc.constantFrom('"', ',', ', ', 'W/', '"x"', '*', ' ', '\t', ';', '=', '\\', 'wait', '0', '-'),
    },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 255 }).map((byte) => String.fromCharCode(byte)) },
  ),
  maxLength: 60,
});
const headerLines = fc.array(headerText, { maxLength: 3 });
/** Text of any UTF-16 code units, lone surrogates too. */
const anyText = fc.string({
  unit: fc.oneof(fc.string({ unit: 'binary', maxLength: 1 }), fc.constantFrom('\ud83d', '\ude00', '\0')),
});
/** JSON texts, half of them spoilt in one place. */
const jsonText = fc
  .tuple(
    fc.oneof(
      fc.json(),
      fc.jsonValue().map((value) => JSON.stringify(value, null, 1)),
    ),
    fc.option(
      fc.record({
        at: fc.nat(),
        cut: fc.nat({ max: 3 }),
        put: fc.constantFrom(
          '',
          '"',
          '\\',
          ',',
          ':',
          '{',
          '}',
          '[',
          ']',
          '0',
          '-',
          '.',
          'e',
          'null',
          '"a":1,"a":2',
          '1e17',
          '\u0001',
          '\ud800',
        ),
      }),
    ),
  )
  .map(([text, spoil]) => {
    if (spoil === null) return text;
    const at = spoil.at % (text.length + 1);
    return text.slice(0, at) + spoil.put + text.slice(at + spoil.cut);
  });

test('whatever a header holds, each parser answers with one of its kinds', () => {
  fc.assert(
    fc.property(headerLines, fc.boolean(), fc.boolean(), (lines, safe, there) => {
      assert.ok(['absent', 'invalid', 'key'].includes(parseIdempotencyKey(lines).kind));
      const list = parseTagList(lines);
      assert.ok(['absent', 'any', 'tags', 'invalid'].includes(list.kind));
      const current = there ? { opaque: 'x', weak: true } : undefined;
      const verdict = judgeConditions({ ifMatch: list, ifNoneMatch: list, current, safe });
      assert.ok((safe ? ['proceed', 'not_modified', 'failed'] : ['proceed', 'failed']).includes(verdict));
      const { waitSeconds, returnRepresentation } = parsePrefer(lines);
      assert.ok(waitSeconds === undefined || (Number.isSafeInteger(waitSeconds) && waitSeconds >= 0));
      assert.equal(typeof returnRepresentation, 'boolean');
      const trace = parseTraceparent(lines);
      assert.ok(trace === undefined || /^[0-9a-f]{32}$/.test(trace.traceId));
      for (const line of lines) {
        for (const waitMs of [parseRetryAfter(line, 0), parseRetryAfterMs(line)]) {
          assert.ok(waitMs === undefined || (Number.isFinite(waitMs) && waitMs >= 0));
        }
      }
    }),
    { numRuns: 2_000 },
  );
});

test('whatever a path or query holds, ids, cursors and version tags are read or refused', () => {
  fc.assert(
    fc.property(anyText, anyText, (text, other) => {
      assert.ok(parseId('ord', text) === undefined);
      assert.ok(parseCursor(text, other, () => 'never') === undefined);
      assert.ok(versionOfTag({ opaque: text, weak: true }, other, 'q7') === undefined);
    }),
  );
});

test('a key, a tag list, a trace, a cursor, an id, a version and a wait come back as they were written', () => {
  const visible = fc.string({
    unit: fc
      .integer({ min: 0x21, max: 0x7e })
      .map((unit) => String.fromCharCode(unit))
      .filter((c) => c !== '"'),
    minLength: 1,
    maxLength: 255,
  });
  fc.assert(
    fc.property(visible, (key) => {
      assert.deepEqual(parseIdempotencyKey([formatIdempotencyKey(key)]), { kind: 'key', key });
      if (!key.includes('\\')) assert.deepEqual(parseIdempotencyKey([` "${key}"\t`]), { kind: 'key', key });
    }),
  );
  const tag: fc.Arbitrary<EntityTag> = fc.record(
    { opaque: fc.oneof(visible, fc.constant('')), weak: fc.boolean() },
    plain,
  );
  const separator = fc.constantFrom(',', ', ', '\t,', ',,', ' , \t, ');
  fc.assert(
    fc.property(fc.array(tag, { minLength: 1 }), separator, (tags, between) => {
      const text = tags.map(formatTag).join(between);
      assert.deepEqual(parseTagList([text]), { kind: 'tags', tags });
      assert.deepEqual(parseTagList(tags.map(formatTag)), { kind: 'tags', tags });
    }),
  );
  const hex = (length: number) =>
    fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: length, maxLength: length });
  const nonZero = (length: number) => hex(length).filter((text) => /[^0]/.test(text));
  fc.assert(
    fc.property(nonZero(32), nonZero(16), fc.integer({ min: 0, max: 3 }), (traceId, parentId, flags) => {
      const trace = { traceId, parentId, flags };
      assert.deepEqual(parseTraceparent([formatTraceparent(trace)]), trace);
    }),
  );
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: 'grapheme', maxLength: 12 }), { maxLength: 4 }),
      anyText,
      (position, binding) => {
        const mac = (text: string) => `m${text.length}`;
        assert.deepEqual(parseCursor(formatCursor(binding, position, mac), binding, mac), position);
      },
    ),
  );
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 2 ** 31 - 1 }),
      fc.uint8Array({ minLength: 10, maxLength: 10 }),
      (number, random) => {
        const uuid = formatUuidV7(number, random);
        assert.equal(parseId('job', formatId('job', uuid)), uuid);
        const list = parseTagList([formatVersionTag(uuid, number, 'q7')]);
        assert.equal(list.kind === 'tags' && versionOfTag(list.tags[0]!, uuid, 'q7'), number);
        const { seconds, ms } = formatRetryAfter(number);
        assert.ok(seconds >= 1 && seconds <= 60 && seconds * 1_000 >= ms && ms > (seconds - 1) * 1_000);
        assert.equal(parseRetryAfter(String(seconds), 0), seconds * 1_000);
        assert.equal(parseRetryAfterMs(String(ms)), ms);
      },
    ),
  );
});

test('parseJson agrees with JSON.parse, and refuses exactly the texts in which a fault is found', () => {
  let refused = 0;
  fc.assert(
    fc.property(jsonText, (text) => {
      const result = parseJsonText(text);
      const fault = findJsonFault(text);
      if (result.kind === 'value') {
        assert.equal(fault, undefined);
        assert.deepEqual(result.value, JSON.parse(text));
      } else {
        refused++;
        assert.equal(result.reason, fault);
      }
      if (text.isWellFormed() && text !== '') assert.deepEqual(parseJson(new TextEncoder().encode(text)), result);
    }),
    { numRuns: 5_000 },
  );
  assert.ok(refused > 500, `only ${refused} of the texts were spoilt`);
});

test('whatever bytes a body has, it is read or refused with a sentence', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      const result = parseJson(bytes);
      assert.ok(result.kind === 'value' || /^[A-Z].*\.$/s.test(result.reason));
    }),
    { numRuns: 2_000 },
  );
});

test('the canonical text of a value is read as that value, is its own canonical text, and forgets member order', () => {
  const reverse = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(reverse);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value)
        .toReversed()
        .map(([name, member]) => [name, reverse(member)]),
    );
  };
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: anyText.filter((text) => text.length === 1), maxDepth: 4 }), (value) => {
      const text = canonicalize(value);
      assert.equal(canonicalize(JSON.parse(text)), text);
      assert.equal(canonicalize(JSON.parse(JSON.stringify(value, null, 2))), text);
      assert.equal(canonicalize(reverse(value)), text);
      assert.deepEqual(JSON.parse(text), JSON.parse(JSON.stringify(value)));
    }),
    { numRuns: 1_000 },
  );
});

test('a merge patch does what the RFC says in pseudo-code, and applied twice what it does once', () => {
  const withNulls = fc.jsonValue({ maxDepth: 4 });
  fc.assert(
    fc.property(withNulls, withNulls, (target, patch) => {
      const before = JSON.stringify([target, patch]);
      const once = applyMergePatch(target, patch);
      assert.equal(canonicalize(applyMergePatch(once, patch)), canonicalize(once));
      assert.equal(canonicalize(once), canonicalize(mergePatchOfTheRfc(target, patch)));
      assert.equal(JSON.stringify([target, patch]), before, 'neither argument is changed');
    }),
    { numRuns: 1_000 },
  );
});

/** The pseudo-code of RFC 7396 §2, word for word. */
function mergePatchOfTheRfc(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const isObject = typeof target === 'object' && target !== null && !Array.isArray(target);
  const result = new Map(isObject ? Object.entries(target) : []);
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) result.delete(name);
    else result.set(name, mergePatchOfTheRfc(result.get(name), value));
  }
  return Object.fromEntries(result);
}

test('a text is counted as by its iterator, and made storable without changing its length', () => {
  fc.assert(
    fc.property(anyText, (text) => {
      assert.equal(codePoints(text), [...text].length);
      assert.equal(hasForbiddenText(toStorableText(text)), undefined);
      assert.equal(codePoints(toStorableText(text)), codePoints(text));
      if (hasForbiddenText(text) === undefined) assert.equal(toStorableText(text), text);
    }),
  );
});

test('events come back as they were written, in whatever chunks they arrive', () => {
  const line = fc.string({ unit: 'grapheme', maxLength: 8 }).filter((text) => !/[\r\n\0]/.test(text));
  const data = fc.array(line, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('\n'));
  const outgoing = fc.record({ id: line, event: line.filter((name) => name !== ''), data }, plain);
  fc.assert(
    fc.property(
      fc.array(outgoing, { maxLength: 5 }),
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
      (events, cuts) => {
        const bytes = new TextEncoder().encode(events.map(formatEvent).join(''));
        const parser = createEventParser();
        const read = [];
        for (let at = 0, i = 0; at < bytes.length; i++) {
          const size = cuts[i % cuts.length]!;
          read.push(...parser.push(bytes.subarray(at, at + size)));
          at += size;
        }
        assert.deepEqual(read, events);
      },
    ),
    { numRuns: 500 },
  );
});
