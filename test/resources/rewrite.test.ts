import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Provider } from '../../src/llm/provider.ts';
import { createSimulatedProvider } from '../../src/llm/simulated.ts';
import { codePoints } from '../../src/protocol/text.ts';
import { bodyOf } from '../../src/resources/docs/rewrite-text.ts';
import { assertProblem, createDoc, putDoc, tagOf } from '../helpers/docs.ts';
import { ledgerOf, topUp } from '../helpers/jobs.ts';
import { type Called, type CallOptions, startServer, type TestServerOptions } from '../helpers/server.ts';
import { testSql, until } from '../helpers/sql.ts';

type Context = Parameters<typeof startServer>[0];
type Caller = { call(line: string, options?: CallOptions): Promise<Called> };

/** A server with a simulated model that counts its calls: the P of a case. */
async function start(t: Context, latencyMs = 20, options: TestServerOptions = {}) {
  const model = createSimulatedProvider({ latencyMs, tokens: 60 });
  const server = await startServer(t, { seedCredits: true, provider: model, ...options });
  return { ...server, model };
}

const rewrite = (server: Caller, id: string, tag: string, key: string, instruction = 'Make it shorter.', more = {}) =>
  server.call(`POST /v1/docs/${id}/rewrite`, { key, body: { instruction }, headers: { 'if-match': tag, ...more } });

const kinds = (items: readonly { kind: string }[]) =>
  items.map((item) => item.kind).filter((kind) => kind !== 'credit');

test('a rewrite is the next version of its document, paid once, and replayed although the tag has moved on', async (t) => {
  const server = await start(t);
  const tag = await createDoc(server, 'd');
  const first = await rewrite(server, 'd', tag, 'k');
  assert.equal(first.status, 200);
  assert.deepEqual([first.json.version, first.json.title, first.json.updated_by], [2, 'first', 'alice']);
  assert.notEqual(first.json.body, 'one');
  assert.equal(first.json.etag, tagOf(first));
  const read = await server.call('GET /v1/docs/d');
  assert.equal(read.text, first.text);
  assert.equal((await putDoc(server, 'd', tagOf(first))).status, 200, 'its tag works at once');
  const again = await rewrite(server, 'd', tag, 'k');
  assert.deepEqual([again.status, again.text], [200, first.text]);
  assert.equal(again.headers.get('idempotent-replayed'), 'true');
  assert.equal(tagOf(again), tagOf(first));
  assert.equal(server.model.stats().calls, 1, '42: P=1');
  const { items, held_micros } = await ledgerOf(server);
  assert.deepEqual(kinds(items), ['charge', 'release', 'hold']);
  assert.equal(held_micros, 0);
  for (const item of items.slice(0, 3)) {
    assert.equal(item.source_type, 'rewrite');
    assert.ok(item.source_id.startsWith('d:'), 'the source names the document');
  }
});

test('42: a tag that is stale before the call is a 412 that costs nothing, and the key stays free', async (t) => {
  const server = await start(t);
  const old = await createDoc(server, 'd');
  const tag = tagOf(await putDoc(server, 'd', old));
  const refused = await rewrite(server, 'd', old, 'k');
  assertProblem(refused, 412, 'precondition_failed');
  assert.equal(refused.json.draft, undefined);
  assert.equal(refused.json.current_etag, tag);
  assert.equal(server.model.stats().calls, 0, 'P=0');
  assert.deepEqual(kinds((await ledgerOf(server)).items), []);
  assert.equal((await server.call('GET /v1/idempotency-keys/k')).status, 404);
  assert.equal((await rewrite(server, 'd', tag, 'k')).status, 200);
});

test('42: a tag that becomes stale during the call is a 412 with the draft, stored, replayed and paid', async (t) => {
  const server = await start(t, 300);
  const tag = await createDoc(server, 'd');
  const writing = rewrite(server, 'd', tag, 'k', 'x', { prefer: 'return=representation' });
  await until(() => server.model.stats().active === 1);
  const edited = await putDoc(server, 'd', tag);
  const lost = await writing;
  assertProblem(lost, 412, 'precondition_failed');
  assert.equal(tagOf(lost), tagOf(edited));
  assert.deepEqual(
    [lost.json.current_etag, lost.json.current_version, lost.json.changed_by],
    [tagOf(edited), 2, 'alice'],
  );
  assert.equal(lost.json.current.body, 'two');
  assert.equal((lost.json.draft.match(/\S+/g) ?? []).length, 60, 'all that the model wrote');
  const again = await rewrite(server, 'd', tag, 'k', 'x', { prefer: 'return=representation' });
  assert.deepEqual([again.status, again.text], [412, lost.text]);
  assert.equal(again.headers.get('idempotent-replayed'), 'true');
  assert.equal(tagOf(again), tagOf(lost));
  assert.equal(server.model.stats().calls, 1, 'P=1');
  const { items } = await ledgerOf(server);
  assert.deepEqual(kinds(items), ['charge', 'release', 'hold']);
  assert.equal((await server.call('GET /v1/docs/d')).json.body, 'two', "nobody's edit was overwritten");
  assert.equal((await rewrite(server, 'd', tagOf(lost), 'k2')).status, 200, 'the tag of the 412 works');
});

test('a newer version ends the call within two seconds, and only what was written by then is paid', async (t) => {
  const server = await start(t, 60_000);
  const tag = await createDoc(server, 'd');
  const writing = rewrite(server, 'd', tag, 'k', '[[tokens:1000]]');
  await until(() => server.model.stats().completionTokens > 0);
  await putDoc(server, 'd', tag);
  const editedMs = performance.now();
  const lost = await writing;
  const ms = performance.now() - editedMs;
  t.diagnostic(`ended ${ms.toFixed(0)} ms after the newer version`);
  assertProblem(lost, 412, 'precondition_failed');
  assert.ok(ms < 2_000);
  assert.equal(server.model.stats().active, 0);
  const words = (lost.json.draft.match(/\S+/g) ?? []).length;
  assert.ok(words > 0 && words < 100);
  const charge = (await ledgerOf(server)).items.find((item) => item.kind === 'charge');
  const prompt = -(charge?.amount_micros ?? 0) / 10 - words;
  assert.ok(prompt > 10 && prompt < 100, 'the prompt, and the words of the draft');
});

test('a document that is deleted while the model writes is a 404 with the draft', async (t) => {
  const server = await start(t, 300);
  const tag = await createDoc(server, 'd');
  const writing = rewrite(server, 'd', tag, 'k');
  await until(() => server.model.stats().active === 1);
  await server.call('DELETE /v1/docs/d', { headers: { 'if-match': tag } });
  const gone = await writing;
  assertProblem(gone, 404, 'not_found');
  assert.ok(gone.json.draft.length > 0);
  const again = await rewrite(server, 'd', tag, 'k');
  assert.deepEqual([again.status, again.text], [404, gone.text], 'paid, so kept');
  assert.equal(server.model.stats().calls, 1);
});

test('If-Match: * writes over whatever is there when the model is done, but not over nothing', async (t) => {
  const server = await start(t, 300);
  const tag = await createDoc(server, 'd');
  const writing = rewrite(server, 'd', '*', 'k');
  await until(() => server.model.stats().active === 1);
  await putDoc(server, 'd', tag);
  const written = await writing;
  assert.deepEqual([written.status, written.json.version, written.json.title], [200, 3, 'next']);
  assertProblem(await rewrite(server, 'missing', '*', 'k2'), 404, 'not_found');
  assert.equal(server.model.stats().calls, 1);
});

test('of several tags in If-Match only the version that was read may be written', async (t) => {
  const server = await start(t, 300);
  const v1 = await createDoc(server, 'd');
  const v2 = v1.replace('-v1.', '-v2.');
  const writing = rewrite(server, 'd', `${v1}, ${v2}`, 'k');
  await until(() => server.model.stats().active === 1);
  assert.equal(tagOf(await putDoc(server, 'd', v1)), v2);
  assertProblem(await writing, 412, 'precondition_failed');
  assert.equal((await server.call('GET /v1/docs/d')).json.body, 'two');
});

test('a rewrite is refused in the order of the contract, and none of these refusals is paid or stored', async (t) => {
  const server = await start(t);
  const old = await createDoc(server, 'd');
  const tag = tagOf(await putDoc(server, 'd', old));
  const post = (headers: Record<string, string>, body: unknown, id = 'd') =>
    server.call(`POST /v1/docs/${id}/rewrite`, { key: 'k', body, headers });
  assertProblem(await post({}, {}), 428, 'precondition_required');
  assertProblem(await post({ 'if-match': old }, {}), 412, 'precondition_failed');
  assertProblem(await post({ 'if-match': tag }, {}), 422, 'invalid_body');
  assertProblem(await post({ 'if-match': tag }, { instruction: 'a\u0000' }), 422, 'invalid_body');
  assertProblem(await post({ 'if-match': tag }, { instruction: 'x' }, 'missing'), 404, 'not_found');
  assertProblem(await post({ 'if-match': 'x' }, { instruction: 'x' }), 400, 'precondition_invalid');
  const withoutKey = await server.call('POST /v1/docs/d/rewrite', { body: { instruction: 'x' } });
  assertProblem(withoutKey, 400, 'idempotency_key_required');
  assert.equal((await post({ 'if-match': tag }, { instruction: 'x' })).status, 200);
  assert.equal(server.model.stats().calls, 1);
});

test('a copy of a rewrite that still runs is told at once, or waits for the answer where it asks to', async (t) => {
  const server = await start(t, 400);
  const tag = await createDoc(server, 'd');
  const first = rewrite(server, 'd', tag, 'k');
  await until(() => server.model.stats().active === 1);
  const [told, waited] = await Promise.all([
    rewrite(server, 'd', tag, 'k'),
    rewrite(server, 'd', tag, 'k', 'Make it shorter.', { prefer: 'wait=10' }),
  ]);
  assertProblem(told, 409, 'request_in_progress');
  assert.deepEqual([waited.status, waited.text], [200, (await first).text]);
  assert.equal(server.model.stats().calls, 1);
});

const troubles = [
  { what: 'fails', instruction: '[[fail:500 times=1]]', status: 502, code: 'upstream_failed', unknown: 0 },
  { what: 'refuses for good', instruction: '[[fail:400 times=1]]', status: 502, code: 'upstream_failed', unknown: 0 },
  { what: 'breaks off', instruction: '[[cut:10 times=1]]', status: 502, code: 'upstream_failed', unknown: 1 },
  { what: 'cannot be reached', instruction: '[[refused times=1]]', status: 502, code: 'upstream_failed', unknown: 0 },
  { what: 'is busy', instruction: '[[fail:429:7 times=1]]', status: 503, code: 'upstream_busy', unknown: 0 },
  { what: 'hangs', instruction: '[[stall times=1]]', status: 504, code: 'upstream_timeout', unknown: 1 },
] as const;

for (const { what, instruction, status, code, unknown } of troubles) {
  test(`a provider that ${what} costs nothing, and the same request with the same key works when it is well again`, async (t) => {
    const server = await start(t, 20, { env: { LLM_TIMEOUT_MS: '600' } });
    const tag = await createDoc(server, 'd');
    const failed = await rewrite(server, 'd', tag, 'k', instruction);
    assertProblem(failed, status, code);
    assert.equal(failed.headers.get('retry-after'), code === 'upstream_busy' ? '7' : null);
    assert.equal(failed.headers.get('x-should-retry'), what === 'refuses for good' ? 'false' : null);
    assert.equal(failed.json.key_action, 'reuse');
    const { items, held_micros } = await ledgerOf(server);
    assert.deepEqual([kinds(items), held_micros], [['release', 'hold'], 0]);
    assert.equal(items[0]?.unknown_attempts ?? 0, unknown);
    const other = await rewrite(server, 'd', tag, 'k', 'another instruction');
    assertProblem(other, 409, 'idempotency_key_reused');
    const retried = await rewrite(server, 'd', tag, 'k', instruction);
    assert.equal(retried.status, 200);
    assert.deepEqual(kinds((await ledgerOf(server)).items), ['charge', 'release', 'hold', 'release', 'hold']);
  });
}

test('too little for the call is 402 before the call, and the key is free', async (t) => {
  const model = createSimulatedProvider({ latencyMs: 20, tokens: 20 });
  const server = await startServer(t, { provider: model });
  const tag = await createDoc(server, 'd');
  assertProblem(await rewrite(server, 'd', tag, 'k'), 402, 'insufficient_credits');
  assert.equal(model.stats().calls, 0);
  await topUp(server, 20_000);
  assert.equal((await rewrite(server, 'd', tag, 'k')).status, 200);
});

for (const text of ['nul', 'surrogate', 'emoji', 'crlf', 'html', 'long:200000']) {
  test(`18: a model's text of the kind ${text} is made storable without losing the rest, and replayed byte for byte`, async (t) => {
    const server = await start(t);
    const tag = await createDoc(server, 'd');
    const first = await rewrite(server, 'd', tag, 'k', `[[text:${text}]]`);
    assert.equal(first.status, 200, first.text);
    const { body } = first.json as { body: string };
    assert.ok(body.isWellFormed() && !body.includes('\u0000'));
    assert.equal(body.includes('\ufffd'), text === 'nul' || text === 'surrogate');
    if (text === 'emoji') assert.ok(body.includes('🎉'));
    if (text.startsWith('long')) assert.equal(body.length, 200_000);
    assert.equal((await server.call('GET /v1/docs/d')).json.body, body);
    assert.equal((await rewrite(server, 'd', tag, 'k', `[[text:${text}]]`)).text, first.text);
  });
}

test('a draft keeps what a document could not hold', async (t) => {
  const server = await start(t, 200);
  const tag = await createDoc(server, 'd');
  const writing = rewrite(server, 'd', tag, 'k', '[[text:nul]]');
  await until(() => server.model.stats().active === 1);
  await putDoc(server, 'd', tag);
  const lost = await writing;
  assertProblem(lost, 412, 'precondition_failed');
  assert.ok(lost.json.draft.includes('\u0000'));
  assert.equal((await rewrite(server, 'd', tag, 'k', '[[text:nul]]')).text, lost.text);
});

test('a text longer than a document is cut, says so, and is as long as a document may be', async (t) => {
  const server = await start(t);
  const tag = await createDoc(server, 'd');
  const cut = await rewrite(server, 'd', tag, 'k', '[[text:long:1200000]]');
  assert.equal(cut.status, 200);
  assert.equal(cut.json.body.length, 1_000_000);
  assert.match(cut.json.body.slice(-80), /\[cut here: .*\]$/);
});

test('a body is counted in code points, cut between them, and left alone where it fits', () => {
  assert.equal(bodyOf('\u{1f389}'.repeat(1_000_000)), '\u{1f389}'.repeat(1_000_000));
  const cut = bodyOf('\u{1f389}'.repeat(1_000_001));
  assert.equal(codePoints(cut), 1_000_000);
  assert.ok(cut.isWellFormed());
  assert.equal(bodyOf('a\u0000b\ud800'), 'a\ufffdb\ufffd');
});

test('a model that changes nothing leaves the version alone, and is paid', async (t) => {
  const provider: Provider = {
    name: 'same',
    async *generate(call) {
      call.onSent?.();
      yield { kind: 'text', text: 'one' };
      yield { kind: 'end', finish: 'stop', usage: { promptTokens: 5, completionTokens: 1 } };
    },
  };
  const server = await startServer(t, { seedCredits: true, provider });
  const tag = await createDoc(server, 'd');
  const same = await rewrite(server, 'd', tag, 'k');
  assert.deepEqual([same.status, tagOf(same), same.json.version], [200, tag, 1]);
  assert.equal((await ledgerOf(server)).items[0]?.amount_micros, -60);
});

test('the call carries a derived key, the same for the same step, and the trace of the request', async (t) => {
  const seen: { idempotencyKey: string; traceparent: string | undefined }[] = [];
  const model = createSimulatedProvider({ latencyMs: 5, tokens: 5 });
  const provider: Provider = {
    name: 'seen',
    generate(call) {
      seen.push({ idempotencyKey: call.idempotencyKey, traceparent: call.traceparent });
      return model.generate(call);
    },
  };
  const server = await startServer(t, { seedCredits: true, provider });
  const tag = await createDoc(server, 'd');
  const traceId = 'ab'.repeat(16);
  const traced = { traceparent: `00-${traceId}-${'cd'.repeat(8)}-01` };
  assert.equal((await rewrite(server, 'd', tag, 'k', '[[fail:500 times=1]]', traced)).status, 502);
  assert.equal((await rewrite(server, 'd', tag, 'k', '[[fail:500 times=1]]')).status, 200);
  const other = await createDoc(server, 'e');
  await rewrite(server, 'e', other, 'k-of-another-step');
  assert.equal(seen[0]?.idempotencyKey, seen[1]?.idempotencyKey);
  assert.notEqual(seen[1]?.idempotencyKey, seen[2]?.idempotencyKey);
  assert.ok(seen[0]?.traceparent?.includes(traceId));
});

test('what a dead owner of the key has left held is released by the next owner, who needs it', async (t) => {
  const server = await startServer(t);
  await topUp(server, 11_000);
  const tag = await createDoc(server, 'd');
  assertProblem(await rewrite(server, 'd', tag, 'k', '[[fail:500 times=1]]'), 502, 'upstream_failed');
  // As if that owner had died in its call.
  const sql = testSql(t, server.databaseUrl);
  await sql`insert into holds (tenant, source_type, source_id, amount_micros, request_key, expires_at)
    values ('acme', 'rewrite', 'd:dead', 10900, 'k', now() + interval '1 hour')`;
  await sql`insert into ledger (tenant, id, kind, amount_micros, source_type, source_id, created_at)
    values ('acme', gen_random_uuid(), 'hold', -10900, 'rewrite', 'd:dead', now())`;
  await sql`update balances set balance_micros = balance_micros - 10900, held_micros = held_micros + 10900`;
  assert.equal((await rewrite(server, 'd', tag, 'k', '[[fail:500 times=1]]')).status, 200);
  const { held_micros, of } = await ledgerOf(server);
  assert.equal(held_micros, 0);
  assert.deepEqual(kinds(of('d:dead')).sort(), ['hold', 'release']);
});

test('a server that stops ends its rewrites with 503 and leaves neither key nor credits held', async (t) => {
  const server = await start(t, 60_000, { env: { SHUTDOWN_GRACE_MS: '50' } });
  const tag = await createDoc(server, 'd');
  const writing = rewrite(server, 'd', tag, 'k');
  await until(() => server.model.stats().active === 1);
  await server.stop();
  assertProblem(await writing, 503, 'unavailable');
  const next = await start(t, 20, { databaseUrl: server.databaseUrl });
  const { held_micros, items } = await ledgerOf(next);
  assert.equal(held_micros, 0);
  assert.deepEqual(kinds(items), ['release', 'hold']);
  assert.equal((await rewrite(next, 'd', tag, 'k')).status, 200);
});
