import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createDoc } from '../helpers/docs.ts';
import { connectRaw, rawRequest } from '../helpers/raw-http.ts';
import { startServer, testToken } from '../helpers/server.ts';

/** Where the current and the previous tag of the document go, once they are known. */
const currentMark = '<current>';
const previousMark = '<previous>';

/** Any byte that can stand in a line, and the pieces that tags are made of. */
const byte = fc.integer({ min: 0, max: 0xff }).filter((code) => code !== 0x0a && code !== 0x0d);
const piece = fc.oneof(
  fc.constantFrom('"', ',', '*', 'W/', 'w/', ' ', '\t', '""', '\\', ';', currentMark, previousMark),
  byte.map((code) => String.fromCharCode(code)),
);
/** A list as a client or a proxy may write it. */
const member = fc.constantFrom(
  `W/"${currentMark}"`,
  `"${currentMark}"`,
  `W/"${previousMark}"`,
  '"x"',
  '"a,b"',
  '""',
  'W/"\u00ff"',
  '',
);
const list = fc
  .tuple(fc.array(member, { minLength: 1, maxLength: 4 }), fc.constantFrom(',', ', ', '\t,\t', ' ,, '))
  .map(([members, separator]) => members.join(separator));
const value = fc.oneof(
  { weight: 4, arbitrary: list },
  { weight: 1, arbitrary: fc.constant('*') },
  { weight: 1, arbitrary: fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join('')) },
  { weight: 1, arbitrary: fc.tuple(list, piece).map(([text, extra]) => text + extra) },
);
const request = fc.record({
  method: fc.constantFrom('GET', 'HEAD', 'PUT', 'PATCH', 'DELETE'),
  ifMatch: fc.array(value, { maxLength: 1 }),
  ifNoneMatch: fc.oneof(fc.constant<string[]>([]), fc.array(value, { maxLength: 2 })),
});

/** What each method may answer, whatever the bytes of its conditions are. The parser itself refuses control characters: 400. */
const listed: Readonly<Record<string, readonly number[]>> = {
  GET: [200, 304, 400, 412],
  HEAD: [200, 304, 400, 412],
  PUT: [200, 400, 412, 428],
  PATCH: [200, 400, 412, 428],
  DELETE: [204, 400, 412, 428],
};

test('whatever bytes If-Match and If-None-Match have, the status is one of those listed, and no write goes through without the current tag', async (t) => {
  const server = await startServer(t);
  const auth = `Authorization: Bearer ${await testToken()}`;
  let tag = await createDoc(server, 'd');
  let previous = tag;
  let edits = 0;
  const seen = new Map<string, number>();
  const opaque = (whole: string) => whole.slice(3, -1);

  await fc.assert(
    fc.asyncProperty(request, async ({ method, ifMatch, ifNoneMatch }) => {
      const fill = (text: string) =>
        text.replaceAll(currentMark, opaque(tag)).replaceAll(previousMark, opaque(previous));
      const conditions = { ifMatch: ifMatch.map(fill), ifNoneMatch: ifNoneMatch.map(fill) };
      const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
      const hasBody = method === 'PUT' || method === 'PATCH';
      edits += 1;
      const lines = [
        auth,
        'Connection: close',
        ...(hasBody ? [`Content-Type: ${type}`] : []),
        ...conditions.ifMatch.map((text) => `If-Match: ${text}`),
        ...conditions.ifNoneMatch.map((text) => `If-None-Match: ${text}`),
      ];
      const connection = await connectRaw(t, server.url);
      connection.send(
        rawRequest(`${method} /v1/docs/d`, lines, hasBody ? `{"title":"edit ${edits}","body":""}` : undefined),
      );
      const answer = await connection.answer(method === 'HEAD');
      await connection.closed;

      assert.ok(listed[method]?.includes(answer.status), `${method} answered ${answer.status} ${answer.body}`);
      seen.set(`${method} ${answer.status}`, (seen.get(`${method} ${answer.status}`) ?? 0) + 1);
      const named = (texts: readonly string[]) =>
        texts.some((text) => text.includes(opaque(tag)) || text.includes('*'));
      if (answer.status === 304) assert.ok(named(conditions.ifNoneMatch));
      if ([304, 412].includes(answer.status)) assert.deepEqual(answer.values('etag'), [tag]);
      const wrote = !['GET', 'HEAD'].includes(method) && answer.status < 300;
      if (wrote) assert.ok(named(conditions.ifMatch));
      const now = await server.call('GET /v1/docs/d');
      if (!wrote) assert.equal(now.headers.get('etag'), tag);
      previous = tag;
      if (answer.status === 204) {
        assert.equal(now.status, 404);
        tag = await createDoc(server, 'd');
      } else {
        tag = now.headers.get('etag') as string;
      }
    }),
    { numRuns: 300 },
  );
  t.diagnostic(JSON.stringify(Object.fromEntries([...seen].sort())));
});
