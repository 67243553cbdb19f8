import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { assertProblem, createDoc, putDoc } from '../helpers/docs.ts';
import { connectRaw, type RawAnswer, type RawConnection, rawRequest } from '../helpers/raw-http.ts';
import { freshDatabase, startProcess, startServer, testToken } from '../helpers/server.ts';
import { testSql } from '../helpers/sql.ts';

const writers = 50;

/** What is counted here is who wins: on a machine that is busy with other things nobody shall lose to a deadline. */
const env = { DB_QUERY_TIMEOUT_MS: '60000' };

/** Fifty kept-alive connections, spread over the servers. */
function connectWriters(t: TestContext, urls: readonly string[]): Promise<RawConnection[]> {
  return Promise.all(Array.from({ length: writers }, (_, i) => connectRaw(t, urls[i % urls.length] as string)));
}

/** Every writer sends a PUT of its own with the same tag, all at once. */
async function race(
  connections: readonly RawConnection[],
  auth: string,
  tag: string,
  round: number,
): Promise<RawAnswer[]> {
  return await Promise.all(
    connections.map((connection, writer) => {
      const body = JSON.stringify({ title: `round ${round}`, body: `writer ${writer}` });
      connection.send(rawRequest('PUT /v1/docs/d', [auth, 'Content-Type: application/json', `If-Match: ${tag}`], body));
      return connection.answer();
    }),
  );
}

/** Rounds in which fifty writers hold one tag; the next round's tag is what a loser was told. */
async function runRounds(t: TestContext, urls: readonly string[], firstTag: string, rounds: number): Promise<string> {
  const connections = await connectWriters(t, urls);
  const auth = `Authorization: Bearer ${await testToken()}`;
  const startedMs = performance.now();
  let tag = firstTag;
  for (let round = 0; round < rounds; round += 1) {
    const answers = await race(connections, auth, tag, round);
    const winners = answers.filter((answer) => answer.status === 200);
    const losers = answers.filter((answer) => answer.status === 412);
    assert.deepEqual([winners.length, losers.length], [1, writers - 1], `round ${round}`);
    const won = winners[0]?.values('etag')[0] as string;
    for (const loser of losers) {
      assert.deepEqual(loser.values('etag'), [won]);
      assert.equal(JSON.parse(loser.body).current_version, round + 2);
    }
    tag = losers[round % losers.length]?.values('etag')[0] as string;
  }
  t.diagnostic(`${rounds} rounds of ${writers} writers in ${Math.round(performance.now() - startedMs)} ms`);
  return tag;
}

test('27: of 50 parallel PUTs with one tag one is 200 and 49 are 412 with the winner’s tag, 200 rounds in one process', async (t) => {
  const server = await startServer(t, { env });
  const last = await runRounds(t, [server.url], await createDoc(server, 'd'), 200);
  const read = await server.call('GET /v1/docs/d');
  assert.deepEqual([read.json.version, read.json.etag], [201, last]);
});

test('27: the same over two processes on one database, 100 rounds', async (t) => {
  const databaseUrl = await freshDatabase(t);
  const servers = await Promise.all([
    startProcess(t, { ...env, DATABASE_URL: databaseUrl }),
    startProcess(t, { ...env, DATABASE_URL: databaseUrl }),
  ]);
  const tag = await createDoc(servers[0], 'd');
  const last = await runRounds(
    t,
    servers.map((server) => server.url),
    tag,
    100,
  );
  const read = await servers[1].call('GET /v1/docs/d');
  assert.deepEqual([read.json.version, read.json.etag], [101, last]);
});

test('27: of clients that read, change and write back, and begin again after each 412, no edit is lost', async (t) => {
  const server = await startServer(t, { env });
  await createDoc(server, 'd', { body: { title: 'log', body: '' } });
  const [clients, edits] = [6, 8];
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      const sub = `client-${client}`;
      let current = (await server.call('GET /v1/docs/d', { sub })).json;
      for (let edit = 0; edit < edits; ) {
        const body = `${current.body}${client}:${edit} `;
        const headers = { prefer: 'return=representation' };
        const put = await putDoc(server, 'd', current.etag, { sub, headers, body: { title: 'log', body } });
        if (put.status === 200) edit += 1;
        else assertProblem(put, 412, 'precondition_failed');
        current = put.status === 200 ? put.json : put.json.current;
      }
    }),
  );
  const { body, version } = (await server.call('GET /v1/docs/d')).json;
  assert.equal(version, 1 + clients * edits);
  const entries: string[] = body.trim().split(' ');
  assert.deepEqual([entries.length, new Set(entries).size], [clients * edits, clients * edits]);
});

test('27: on a server whose default isolation is stricter the losers are 412 all the same', async (t) => {
  const databaseUrl = await freshDatabase(t);
  const sql = testSql(t, databaseUrl);
  for (const level of ['repeatable read', 'serializable']) {
    await sql.unsafe(
      `do $$ begin execute format('alter database %I set default_transaction_isolation = %L', current_database(), '${level}'); end $$`,
    );
    const server = await startServer(t, { env, databaseUrl });
    await createDoc(server, 'd', { tenant: 'acme' });
    await runRounds(t, [server.url], (await server.call('GET /v1/docs/d')).json.etag, 5);
    await sql`delete from docs`;
  }
});
