import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type ConditionRef, createModel, type Step } from '../helpers/docs-model.ts';
import { startServer, type TestServer } from '../helpers/server.ts';

const tag = fc.record({
  ahead: fc.constantFrom(-2, -1, -1, 0, 0, 0, 1),
  own: fc.constantFrom(true, true, true, false),
});
const condition = (absent: number): fc.Arbitrary<ConditionRef> =>
  fc.oneof(
    { weight: absent, arbitrary: fc.constant('absent' as const) },
    { weight: 1, arbitrary: fc.constant('any' as const) },
    { weight: 5, arbitrary: fc.array(tag, { minLength: 1, maxLength: 3 }) },
  );
const step: fc.Arbitrary<Step> = fc.record({
  tenant: fc.constantFrom('acme', 'globex'),
  sub: fc.constantFrom('alice', 'bob'),
  id: fc.constantFrom('one', 'two'),
  method: fc.constantFrom('GET', 'HEAD', 'PUT', 'PUT', 'PUT', 'PATCH', 'PATCH', 'DELETE'),
  ifMatch: condition(3),
  ifNoneMatch: condition(12),
  title: fc.constantFrom('a', 'b'),
  body: fc.constantFrom('', 'x'),
});
/** What a client does that wants to create: too rare among random conditions. */
const creation: fc.Arbitrary<Step> = step.map((made) => ({
  ...made,
  method: 'PUT',
  ifMatch: 'absent',
  ifNoneMatch: 'any',
}));
const walk = fc.array(fc.oneof({ weight: 4, arbitrary: step }, { weight: 1, arbitrary: creation }), {
  minLength: 60,
  maxLength: 120,
});

/** Takes each step with the model and with the server, and compares what comes of it. */
async function follow(server: TestServer, steps: readonly Step[], prefix: string, seen: Map<string, number>) {
  const model = createModel();
  for (const short of steps) {
    const taken = { ...short, id: `${prefix}-${short.id}` };
    const headers = Object.entries({
      'if-match': model.header(taken, taken.ifMatch),
      'if-none-match': model.header(taken, taken.ifNoneMatch),
      'content-type': taken.method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
    }).filter((entry): entry is [string, string] => entry[1] !== undefined);
    const expected = model.take(taken);
    const hasBody = taken.method === 'PUT' || taken.method === 'PATCH';
    const answer = await server.call(`${taken.method} /v1/docs/${taken.id}`, {
      tenant: taken.tenant,
      sub: taken.sub,
      headers: Object.fromEntries(headers),
      ...(hasBody ? { body: { title: taken.title, body: taken.body } } : {}),
    });
    const said = `${taken.method} ${JSON.stringify(headers)} by ${taken.sub}: ${answer.text}`;
    assert.equal(answer.status, expected.status, said);
    if (answer.status !== 204) assert.equal(answer.headers.get('etag'), expected.etag, said);
    const { doc } = expected;
    if (doc !== undefined && taken.method !== 'HEAD' && (answer.status === 200 || answer.status === 201)) {
      const { title, body, version, updated_by } = answer.json;
      assert.deepEqual(
        { title, body, version, updated_by },
        { title: doc.title, body: doc.body, version: doc.version, updated_by: doc.by },
        said,
      );
    }
    if (answer.json?.code === 'precondition_failed') {
      assert.deepEqual(
        [answer.json.current_etag, answer.json.current_version, answer.json.changed_by],
        [expected.etag, doc?.version, doc?.by],
        said,
      );
    }
    const kind = `${taken.method} ${answer.status}`;
    seen.set(kind, (seen.get(kind) ?? 0) + 1);
  }
}

test('a model of the store and the server agree on long random walks of conditional requests from several clients', async (t) => {
  const server = await startServer(t);
  const seed = Date.now() % 2 ** 31;
  t.diagnostic(`seed ${seed}`);
  const seen = new Map<string, number>();
  let run = 0;
  await fc.assert(
    fc.asyncProperty(walk, async (steps) => {
      run += 1;
      await follow(server, steps, `walk${run}`, seen);
    }),
    { seed, numRuns: 8, interruptAfterTimeLimit: 60_000 },
  );
  t.diagnostic(JSON.stringify(Object.fromEntries([...seen].sort())));
});
