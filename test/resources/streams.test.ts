import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import { createSimulatedProvider } from '../../src/llm/simulated.ts';
import { jobStream, startOf } from '../../src/resources/jobs/stream.ts';
import { atEnd } from '../helpers/cleanup.ts';
import { createJob, ended, openStream, textOf } from '../helpers/jobs.ts';
import { startServer, type TestServer, testToken } from '../helpers/server.ts';
import { testSql, until } from '../helpers/sql.ts';

type Context = Parameters<typeof startServer>[0];

/** A server whose model takes so long for so many tokens. */
async function start(t: Context, latencyMs: number, tokens = 40, env: Record<string, string> = {}) {
  const model = createSimulatedProvider({ latencyMs, tokens });
  const server = await startServer(t, { seedCredits: true, provider: model, env });
  return { ...server, model };
}

test('36: two tabs read one job, one leaves, the other reads on; both got the same bytes and the model was called once', async (t) => {
  const server = await start(t, 400);
  const id = await createJob(server, 'k', 'x');
  const [stays, leaves] = await Promise.all([openStream(server, id), openStream(server, id)]);
  await leaves.until('delta');
  const seenByOne = leaves.text();
  leaves.cut();
  const events = await stays.rest();
  assert.ok(stays.text().startsWith(seenByOne.slice(0, seenByOne.lastIndexOf('\n\n') + 2)));
  const late = await openStream(server, id);
  await late.rest();
  assert.equal(late.text(), stays.text());
  assert.equal(events.at(-1)?.event, 'done');
  assert.equal(server.model.stats().calls, 1);
});

test('37: a reader that is cut and goes on from its last id misses nothing, repeats nothing, and ends with the stored text', async (t) => {
  const server = await start(t, 900, 90);
  const id = await createJob(server, 'k', 'x');
  const seen = [];
  let lastEventId: string | undefined;
  for (let cuts = 0; cuts < 5; cuts += 1) {
    const stream = await openStream(server, id, lastEventId === undefined ? {} : { lastEventId });
    for (let i = 0; i <= cuts; i += 1) {
      const event = await stream.next();
      assert.ok(event);
      seen.push(event);
      lastEventId = event.id;
    }
    stream.cut();
  }
  const last = await openStream(server, id, { lastEventId: lastEventId as string });
  seen.push(...(await last.rest()));
  assert.deepEqual(
    seen.map((event) => event.id),
    seen.map((_, i) => String(i + 1)),
  );
  for (const event of seen) assert.equal(event.data.seq, Number(event.id));
  const whole = await openStream(server, id);
  assert.deepEqual(await whole.rest(), seen);
  assert.equal(textOf(seen), (await server.call(`GET /v1/jobs/${id}`)).json.result);
});

test('a stream says how it wants to be read, and carries neither a tag nor a length', async (t) => {
  const server = await start(t, 20);
  const id = await createJob(server, 'k', 'x');
  await ended(server, id);
  const headers = { 'if-none-match': '*', range: 'bytes=0-1' };
  const stream = await openStream(server, id, { headers });
  await stream.rest();
  const { headers: got } = stream.response;
  assert.equal(got.get('content-type'), 'text/event-stream');
  assert.equal(got.get('cache-control'), 'no-store, no-transform');
  assert.equal(got.get('x-accel-buffering'), 'no');
  assert.match(got.get('x-trace-id') ?? '', /^[0-9a-f]{32}$/);
  for (const name of ['etag', 'content-length', 'content-encoding']) assert.equal(got.get(name), null);
  assert.ok(stream.text().startsWith('retry: 2000\n\nid: 1\nevent: status\ndata: {"seq":1,"status":"queued"}\n\n'));
  const head = await server.call(`HEAD /v1/jobs/${id}/events`);
  assert.deepEqual([head.status, head.text, head.headers.get('content-type')], [200, '', 'text/event-stream']);
});

test('a reader at the end of a finished job is told to stop (204), one before the end gets what is left', async (t) => {
  const server = await start(t, 20);
  const id = await createJob(server, 'k', 'x');
  const events = await (await openStream(server, id)).rest();
  const n = events.length;
  const at = (lastEventId: string, after?: string) =>
    server.call(`GET /v1/jobs/${id}/events${after === undefined ? '' : `?after=${after}`}`, {
      headers: { 'last-event-id': lastEventId },
    });
  const end = await at(String(n));
  assert.deepEqual([end.status, end.text], [204, '']);
  assert.equal((await at('0', String(n))).status, 204, 'the larger cursor wins');
  assert.equal((await at(String(n), '0')).status, 204);
  assert.equal((await at(String(n - 1))).text, `retry: 2000\n\n${blockOf(events.at(-1))}`);
  for (const bad of ['-1', '1.5', 'x', '1e3', '0x1', ' ', String(n + 1), '99999999999999999999', '']) {
    const refused = await at(bad);
    assert.deepEqual([refused.status, refused.json.code], [400, 'invalid_cursor'], JSON.stringify(bad));
  }
  assert.equal((await at('0', 'x')).json.code, 'invalid_cursor');
});

function blockOf(event: { id: string; event: string; data: unknown } | undefined): string {
  return `id: ${event?.id}\nevent: ${event?.event}\ndata: ${JSON.stringify(event?.data)}\n\n`;
}

test('a cursor is the larger one of header and query, and nothing but a non-negative integer', () => {
  assert.equal(startOf([], undefined), 0);
  assert.equal(startOf(['7'], undefined), 7);
  assert.equal(startOf(['7'], '12'), 12);
  assert.equal(startOf(['12'], '7'), 12);
  assert.equal(startOf(['007'], undefined), 7);
  for (const lines of [['7', '8'], ['7,8'], [''], ['-0'], ['+1'], ['٣']])
    assert.equal(startOf(lines, undefined), undefined);
});

test('the first bytes of a stream are there within 100 ms of the GET, though the model says nothing', async (t) => {
  const server = await start(t, 20);
  const id = await createJob(server, 'k', '[[stall]]');
  let fastest = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 5; i += 1) {
    const startedMs = performance.now();
    const stream = await openStream(server, id);
    await stream.next();
    fastest = Math.min(fastest, performance.now() - startedMs);
    stream.cut();
  }
  t.diagnostic(`first event after ${fastest.toFixed(1)} ms`);
  assert.ok(fastest < 100);
  await server.call(`PUT /v1/jobs/${id}/cancellation`);
});

test('a quiet stream sends a comment now and then, and ends when its reader leaves', async () => {
  const written: string[] = [];
  const leave = new AbortController();
  let closed = 0;
  const feed = {
    open: () => ({
      next: async (quietMs: number) => {
        assert.equal(quietMs, 5);
        if (written.length === 3) leave.abort();
        return 'quiet' as const;
      },
      close: () => {
        closed += 1;
      },
    }),
  };
  const stream = jobStream(feed as never, { tenant: 'acme', id: 'x' }, 0, 5);
  await stream({ signal: leave.signal, write: async (chunk) => void written.push(chunk) });
  assert.deepEqual(written.slice(0, 3), ['retry: 2000\n\n', ': \n\n', ': \n\n']);
  assert.equal(closed, 1);
});

test('a server that stops ends its streams properly, and another goes on behind the last id', async (t) => {
  const first = await start(t, 60_000, 3_000);
  const id = await createJob(first, 'k', 'x', { maxTokens: 4_000 });
  const stream = await openStream(first, id);
  const delta = await stream.until('delta');
  const second = await startServer(t, { databaseUrl: first.databaseUrl, env: { WORKERS: '0' } });
  const stopping = first.stop();
  const seen = await stream.rest();
  await stopping;
  assert.ok(Number(seen.at(-1)?.id) >= Number(delta.id));
  const resumed = await openStream(second, id, { lastEventId: seen.at(-1)?.id as string });
  await second.call(`PUT /v1/jobs/${id}/cancellation`);
  const rest = await resumed.rest();
  assert.equal(rest.at(-1)?.event, 'cancelled');
  assert.equal(rest[0]?.id, String(Number(seen.at(-1)?.id) + 1));
});

test('events written by one process are read live through another, with a listener and without', async (t) => {
  const worker = await start(t, 600, 60);
  const listening = await startServer(t, { databaseUrl: worker.databaseUrl, env: { WORKERS: '0' } });
  const polling = await startServer(t, {
    databaseUrl: worker.databaseUrl,
    env: { WORKERS: '0', DB_PREPARE: 'false' },
  });
  const id = await createJob(worker, 'k', 'x');
  const streams = await Promise.all([worker, listening, polling].map((server) => openStream(server, id)));
  // Live: there is text while the job still runs.
  for (const stream of streams) await stream.until('delta');
  assert.equal((await worker.call(`GET /v1/jobs/${id}`)).json.status, 'running');
  const texts = await Promise.all(streams.map(async (stream) => [await stream.rest(), stream.text()][1]));
  assert.equal(new Set(texts).size, 1);
  assert.deepEqual([listening.jobs.isListening(), polling.jobs.isListening()], [true, false]);
});

test('a listening connection that is lost is replaced, and no stream stands still meanwhile', async (t) => {
  const server = await start(t, 2_000, 100);
  const sql = testSql(t, server.databaseUrl);
  const id = await createJob(server, 'k', 'x');
  const stream = await openStream(server, id);
  await stream.until('delta');
  const killed = await sql`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and query like 'listen %'`;
  assert.equal(killed.length, 1);
  const events = await stream.rest();
  assert.equal(events.at(-1)?.event, 'done');
  await until(() => server.jobs.isListening());
});

test('41: 200 readers of one job share one listener and one read a batch, and all get the same bytes', async (t) => {
  const server = await start(t, 1_500, 60);
  const sql = testSql(t, server.databaseUrl);
  const id = await createJob(server, 'k', 'x');
  const token = await testToken();
  const readers = await Promise.all(Array.from({ length: 200 }, () => openRaw(t, server, id, token)));
  const servedBefore = server.db.stats().served;
  const listeners =
    await sql`select 1 from pg_stat_activity where datname = current_database() and query like 'listen %'`;
  assert.equal(listeners.length, 1);
  const texts = await Promise.all(readers.map((reader) => reader.ended));
  const { last_seq } = (await sql<{ last_seq: number }[]>`select last_seq from jobs`)[0] ?? { last_seq: 0 };
  const statements = server.db.stats().served - servedBefore;
  t.diagnostic(`${last_seq} events to 200 readers: ${statements} statements in all`);
  // An append and a read a batch, polls and renewals; never one a reader.
  assert.ok(statements < 4 * last_seq + 20);
  assert.equal(new Set(texts).size, 1);
  assert.ok(texts[0]?.includes('event: done'));
});

/** Reads a stream over a socket of its own, without fetch's machinery. */
async function openRaw(t: Context, server: TestServer, id: string, token: string, reads = true) {
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  atEnd(t, () => socket.destroy());
  await once(socket, 'connect');
  socket.write(
    `GET /v1/jobs/${id}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`,
  );
  if (!reads) socket.pause();
  const parts: Buffer[] = [];
  socket.on('data', (part: Buffer) => parts.push(part));
  socket.on('error', () => {});
  if (reads) await once(socket, 'data');
  const whole = once(socket, 'end').then(() => eventsOf(Buffer.concat(parts).toString()));
  return { socket, ended: whole };
}

/** What a chunked answer carried, without what differs from connection to connection. */
function eventsOf(text: string): string {
  const [, ...body] = text.split('\r\n\r\n');
  return body.join('\r\n\r\n').replace(/(?:^|\r\n)[0-9a-f]+\r\n/g, '');
}

test('41: readers that never read cost no memory and do not slow the producer down', async (t) => {
  const length = 1_000_000;
  const server = await start(t, 300, 40);
  // What the same text takes with one reader alone, on this machine at this moment.
  const aloneStartedMs = performance.now();
  const alone = await openStream(
    server,
    await createJob(server, 'alone', `[[text:long:${length}]]`, { maxTokens: 4_096 }),
  );
  await alone.rest();
  const aloneMs = performance.now() - aloneStartedMs;
  const id = await createJob(server, 'k', `[[text:long:${length}]]`, { maxTokens: 4_096 });
  const token = await testToken();
  const stuck = await Promise.all(Array.from({ length: 50 }, () => openRaw(t, server, id, token, false)));
  global.gc?.();
  const before = process.memoryUsage();
  const startedMs = performance.now();
  const reader = await openStream(server, id);
  const events = await reader.rest();
  const tookMs = performance.now() - startedMs;
  assert.equal(textOf(events).length, length);
  global.gc?.();
  const after = process.memoryUsage();
  const grownMb = (after.rss - before.rss) / 1_048_576;
  t.diagnostic(`a text of 1 MB past 50 readers that never read: ${tookMs.toFixed(0)} ms, ${grownMb.toFixed(0)} MB`);
  // All of it for each of them would be 50 MB in their buffers alone, twice over as strings.
  assert.ok(grownMb < 60, `${grownMb} MB`);
  assert.ok(tookMs < 3 * aloneMs + 1_000, `${tookMs} ms beside 50 readers, ${aloneMs} ms alone`);
  for (const { socket } of stuck) socket.destroy();
});
