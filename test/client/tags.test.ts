import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createClient, MergeConflict, PreconditionFailedError, RefusedError } from '../../src/client/index.ts';
import { startFaultProxy } from '../helpers/fault-proxy.ts';
import { startServer, testToken } from '../helpers/server.ts';
import { scriptedClient } from './scripted.ts';

const quick = { backOffMs: 1, maxBackOffMs: 5 };

/** A server with one document, behind a proxy that sees what is sent. */
async function withDoc(t: TestContext) {
  const server = await startServer(t);
  const proxy = await startFaultProxy(t, server.url);
  const client = createClient({ baseUrl: proxy.url, token: await testToken(), patience: quick });
  const { body: doc, tag } = await client.call('createDoc', { body: { title: 'one', body: 'text' } });
  assert.ok(tag !== undefined, 'a new document has a tag');
  return { server, proxy, client, doc, tag, id: doc.id };
}

test('what has not changed is answered from memory on a 304', async (t) => {
  const { proxy, client, id } = await withDoc(t);
  const first = await client.call('getDoc', { params: { id } });
  const second = await client.call('getDoc', { params: { id } });
  assert.equal(first.fromMemory, false);
  assert.equal(second.fromMemory, true);
  assert.equal(second.status, 200);
  assert.deepEqual(second.body, first.body);
  assert.equal(second.tag, first.tag);
  assert.equal(proxy.passages.at(-1)?.headers['if-none-match'], first.tag);
});

test('a caller who changes what came from memory changes nothing for the next one', async (t) => {
  const { client, id } = await withDoc(t);
  for (const fromMemory of [false, true, true]) {
    const answer = await client.call('getDoc', { params: { id } });
    assert.equal(answer.fromMemory, fromMemory);
    assert.equal(answer.body.title, 'one');
    (answer.body as { title: string }).title = 'spoilt';
  }
});

test('another token never gets or names what was remembered under this one', async (t) => {
  const { proxy, id } = await withDoc(t);
  const tokens = [await testToken(), await testToken({ tenant: 'globex' })];
  let current = 0;
  const client = createClient({ baseUrl: proxy.url, token: () => tokens[current] as string, patience: quick });
  await client.call('getDoc', { params: { id } });
  await client.call('listDocs');
  current = 1;
  await assert.rejects(client.call('getDoc', { params: { id } }), { code: 'not_found' });
  assert.deepEqual((await client.call('listDocs')).body.items, []);
  for (const passage of proxy.passages.slice(-2)) assert.equal(passage.headers['if-none-match'], undefined);
  current = 0;
  assert.equal((await client.call('getDoc', { params: { id } })).fromMemory, true);
});

test('updateDoc writes over the version it was shown', async (t) => {
  const { client, id } = await withDoc(t);
  const updated = await client.updateDoc(id, ({ body }) => ({ body: `${body} and more` }));
  assert.equal(updated.body, 'text and more');
  assert.equal(updated.version, 2);
  assert.equal(updated.title, 'one');
});

test('updateDoc applies the change again over the version of whoever was faster', async (t) => {
  const { client, server, id, tag } = await withDoc(t);
  const bases: string[] = [];
  const updated = await client.updateDoc(id, async ({ body }) => {
    bases.push(body);
    if (bases.length === 1) {
      const headers = { 'if-match': tag };
      const rival = await server.call(`PUT /v1/docs/${id}`, { headers, body: { title: 'theirs', body: 'their text' } });
      assert.equal(rival.status, 200);
    }
    return { body: `${body} + mine` };
  });
  assert.deepEqual(bases, ['text', 'their text']);
  assert.equal(updated.body, 'their text + mine');
  assert.equal(updated.title, 'theirs');
  assert.equal(updated.version, 3);
});

test('twelve clients who count in one document lose no count', async (t) => {
  const { proxy, client, id } = await withDoc(t);
  await client.updateDoc(id, () => ({ body: '0' }));
  const token = await testToken();
  const counting = Array.from({ length: 12 }, () =>
    createClient({ baseUrl: proxy.url, token, patience: quick }).updateDoc(
      id,
      ({ body }) => ({ body: String(Number(body) + 1) }),
      { maxRounds: 50 },
    ),
  );
  await Promise.all(counting);
  const { body } = await client.call('getDoc', { params: { id } });
  assert.equal(body.body, '12');
  assert.equal(body.version, 14);
});

test('no client sends a tag again that it was refused with', async (t) => {
  const { proxy, id } = await withDoc(t);
  const tokens = await Promise.all(Array.from({ length: 6 }, (_, i) => testToken({ sub: `writer-${i}` })));
  const change = () => ({ title: crypto.randomUUID() });
  const update = (token: string) =>
    createClient({ baseUrl: proxy.url, token, patience: quick }).updateDoc(id, change, { maxRounds: 50 });
  await Promise.all(tokens.map(update));
  const writes = proxy.passages.filter(({ line }) => line.startsWith('PATCH'));
  assert.ok(writes.length > tokens.length, 'nobody was ever refused');
  const sent = writes.map(({ headers }) => `${headers.authorization} ${headers['if-match']}`);
  assert.equal(new Set(sent).size, sent.length);
});

test('an update whose answers are lost is made once', async (t) => {
  const { proxy, client, id } = await withDoc(t);
  await client.call('getDoc', { params: { id } });
  proxy.next({ kind: 'pass' }, { kind: 'drop_answer' }, { kind: 'cut_answer', bodyBytes: 10 });
  const updated = await client.updateDoc(id, ({ body }) => ({ body: `${body}!` }));
  assert.equal(updated.body, 'text!');
  assert.equal(updated.version, 2);
});

test('after its rounds an update leaves base, mine and theirs to the caller', async (t) => {
  const { client, server, id } = await withDoc(t);
  let rivals = 0;
  const beaten = client.updateDoc(
    id,
    async ({ etag }) => {
      rivals += 1;
      await server.call(`PATCH /v1/docs/${id}`, {
        headers: { 'if-match': etag, 'content-type': 'application/merge-patch+json' },
        body: { body: `rival ${rivals}` },
      });
      return { body: 'mine' };
    },
    { maxRounds: 3 },
  );
  const error = await beaten.catch((thrown) => thrown);
  assert.ok(error instanceof MergeConflict, String(error));
  assert.equal(error.code, 'merge_conflict');
  assert.equal(error.status, 412);
  assert.equal((error.base as { body: string }).body, 'rival 2');
  assert.deepEqual(error.mine, { body: 'mine' });
  assert.equal((error.theirs as { body: string }).body, 'rival 3');
  assert.equal(rivals, 3);
});

test('a change of undefined writes nothing', async (t) => {
  const { proxy, client, doc, id } = await withDoc(t);
  assert.deepEqual(await client.updateDoc(id, () => undefined), doc);
  assert.equal(
    proxy.passages.some(({ line }) => line.startsWith('PATCH')),
    false,
  );
});

test('what a change throws ends the update as it is', async (t) => {
  const { client, id } = await withDoc(t);
  const fault = new Error('no idea');
  const update = client.updateDoc(id, () => {
    throw fault;
  });
  await assert.rejects(update, fault);
});

test('an update of a document that was deleted meanwhile is not_found', async (t) => {
  const { client, server, id } = await withDoc(t);
  const update = client.updateDoc(id, async ({ etag }) => {
    await server.call(`DELETE /v1/docs/${id}`, { headers: { 'if-match': etag } });
    return { title: 'x' };
  });
  const error = await update.catch((thrown) => thrown);
  assert.ok(error instanceof RefusedError, String(error));
  assert.equal(error.code, 'not_found');
});

test('a refused tag is read anew, and a stale copy of it is not written over', async () => {
  const doc = (version: number) => ({ id: 'd', title: 't', body: `v${version}`, version, etag: `W/"v${version}"` });
  const read = (version: number) => ({ status: 200, headers: { etag: `W/"v${version}"` }, body: doc(version) });
  const refused = { status: 412, headers: { etag: '"v2"' }, body: { code: 'precondition_failed' } };
  const { client, play, sent } = scriptedClient();
  // A replica that lags shows the refused version twice more, once with a strengthened tag.
  play(read(1), refused, read(1), { ...read(1), headers: { etag: '"v1"' } }, read(2), read(3));
  const updated = await client.updateDoc('d', ({ body }) => ({ body: `${body}!` }));
  assert.equal(updated.version, 3);
  const tags = sent.filter(({ method }) => method === 'PATCH').map(({ headers }) => headers['if-match']);
  assert.deepEqual(tags, ['W/"v1"', 'W/"v2"']);
});

test('a 412 makes the client forget the copy it had of that URL', async () => {
  const { client, play, sent } = scriptedClient();
  const doc = { status: 200, headers: { etag: 'W/"v1"' }, body: { etag: 'W/"v1"' } };
  play(doc, { status: 412, body: { code: 'precondition_failed' } }, doc);
  await client.call('getDoc', { params: { id: 'd' } });
  const write = client.call('patchDoc', { params: { id: 'd' }, body: {}, ifMatch: 'W/"v1"' });
  await assert.rejects(write, PreconditionFailedError);
  await client.call('getDoc', { params: { id: 'd' } });
  assert.equal(sent[2]?.headers['if-none-match'], undefined);
});

test('an answer that says no-store is not remembered', async () => {
  const { client, play, sent } = scriptedClient();
  const secret = { status: 200, headers: { etag: 'W/"v1"', 'cache-control': 'no-store' }, body: {} };
  play(secret, secret);
  await client.call('getDoc', { params: { id: 'd' } });
  await client.call('getDoc', { params: { id: 'd' } });
  assert.equal(sent[1]?.headers['if-none-match'], undefined);
});
