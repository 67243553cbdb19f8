import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import {
  AbortedError,
  type ClientOptions,
  createClient,
  type JobEvent,
  NoAnswerError,
  RefusedError,
  StreamError,
  UnavailableError,
} from '../../src/client/index.ts';
import { delta, jobEvent, refuse, startEventServer, stream } from './event-server.ts';

const usage = { prompt_tokens: 1, completion_tokens: 2, unknown_attempts: 0 };
const done = (seq: number) => jobEvent(seq, 'done', { usage });
const quick = { backOffMs: 1, maxBackOffMs: 5 };

function clientOf(url: string, options: Partial<ClientOptions> = {}) {
  return createClient({ baseUrl: url, token: 'token', ...options, patience: { ...quick, ...options.patience } });
}

async function all(events: AsyncIterable<JobEvent>): Promise<JobEvent[]> {
  const list: JobEvent[] = [];
  for await (const event of events) list.push(event);
  return list;
}

function textOf(events: readonly JobEvent[]): string {
  return events.map((event) => (event.type === 'delta' ? event.text : '')).join('');
}

test('a job’s events come typed, in order, up to the terminal one', async (t) => {
  const blocks = [jobEvent(1, 'status', { status: 'running' }), delta(2, 'Hel'), delta(3, 'lo'), done(4)];
  const { url, resumedFrom } = await startEventServer(t, stream(blocks));
  const events = await all(clientOf(url).jobEvents('job_1'));
  assert.deepEqual(events, [
    { type: 'status', seq: 1, status: 'running' },
    { type: 'delta', seq: 2, text: 'Hel' },
    { type: 'delta', seq: 3, text: 'lo' },
    { type: 'done', seq: 4, usage },
  ]);
  assert.deepEqual(resumedFrom, [undefined]);
});

for (const end of ['error', 'cancelled'] as const) {
  test(`a stream ends with ${end}`, async (t) => {
    const { url, resumedFrom } = await startEventServer(t, stream([jobEvent(1, end, { code: 'x', usage })]));
    assert.equal((await all(clientOf(url).jobEvents('job_1'))).at(-1)?.type, end);
    assert.equal(resumedFrom.length, 1);
  });
}

test('a stream that is cut goes on behind the last whole event, without gap and repeat', async (t) => {
  const half = delta(3, 'never').slice(0, -8);
  const { url, resumedFrom } = await startEventServer(
    t,
    stream([delta(1, 'a'), delta(2, 'b'), half], 'broken'),
    stream([], 'closed'),
    stream([delta(2, 'b'), delta(3, 'c')], 'closed'),
    stream([delta(4, 'd'), done(5)]),
  );
  const events = await all(clientOf(url).jobEvents('job_1'));
  assert.equal(textOf(events), 'abcd');
  assert.deepEqual(
    events.map(({ seq }) => seq),
    [1, 2, 3, 4, 5],
  );
  assert.deepEqual(resumedFrom, [undefined, '2', '2', '3']);
});

test('a stream begins behind the number it is given', async (t) => {
  const { url, resumedFrom } = await startEventServer(t, stream([delta(8, 'x'), done(9)]));
  const events = await all(clientOf(url).jobEvents('job_1', { after: 7 }));
  assert.equal(events.length, 2);
  assert.deepEqual(resumedFrom, ['7']);
});

test('a job that has ended before the number gives no events', async (t) => {
  const { url } = await startEventServer(t);
  assert.deepEqual(await all(clientOf(url).jobEvents('job_1', { after: 9 })), []);
});

test('429, 503 and a broken connection are waited out', async (t) => {
  const { url, resumedFrom } = await startEventServer(
    t,
    refuse(429, 'rate_limited', { 'retry-after-ms': '5' }),
    stream([delta(1, 'a')], 'broken'),
    refuse(503, 'unavailable', { 'retry-after-ms': '5' }),
    (res) => res.destroy(),
    stream([delta(2, 'b'), done(3)]),
  );
  assert.equal(textOf(await all(clientOf(url).jobEvents('job_1'))), 'ab');
  assert.deepEqual(resumedFrom, [undefined, undefined, '1', '1', '1']);
});

test('events that are no longer kept are a refusal', async (t) => {
  const { url } = await startEventServer(t, refuse(410, 'events_deleted'));
  const error = await all(clientOf(url).jobEvents('job_1')).catch((thrown) => thrown);
  assert.ok(error instanceof RefusedError, String(error));
  assert.equal(error.code, 'events_deleted');
  assert.equal(error.status, 410);
});

test('a stream takes a fresh token after a 401', async (t) => {
  const seen: (string | undefined)[] = [];
  const { url } = await startEventServer(
    t,
    (res, req) => {
      seen.push(req.headers.authorization);
      refuse(401, 'unauthenticated')(res, req);
    },
    (res, req) => {
      seen.push(req.headers.authorization);
      stream([done(1)])(res, req);
    },
  );
  const token: ClientOptions['token'] = ({ rejected }) => (rejected === undefined ? 'old' : 'fresh');
  assert.equal((await all(clientOf(url, { token }).jobEvents('job_1'))).length, 1);
  assert.deepEqual(seen, ['Bearer old', 'Bearer fresh']);
});

test('an outage longer than the patience ends the stream with what it was', async (t) => {
  const asked = await startEventServer(t, refuse(503, 'unavailable', { 'retry-after': '10' }));
  const patience = { budgetMs: 2_000 };
  await assert.rejects(all(clientOf(asked.url, { patience }).jobEvents('job_1')), UnavailableError);
  const broken = await startEventServer(t, ...Array.from({ length: 500 }, () => stream([], 'broken')));
  const brief = clientOf(broken.url, { patience: { budgetMs: 200 } });
  await assert.rejects(all(brief.jobEvents('job_1')), NoAnswerError);
});

test('an event whose data makes no sense ends the stream, and one of an unknown name is passed over', async (t) => {
  const later = jobEvent(1, 'toolcall', { tool: 'new' });
  const { url, resumedFrom } = await startEventServer(t, stream([later, jobEvent(2, 'delta', { text: 5 })]));
  await assert.rejects(all(clientOf(url).jobEvents('job_1')), StreamError);
  assert.equal(resumedFrom.length, 1);
});

test('a signal ends a stream that waits for its next event', async (t) => {
  const { url } = await startEventServer(t, stream([delta(1, 'a')]));
  const controller = new AbortController();
  const events = clientOf(url).jobEvents('job_1', { signal: controller.signal });
  assert.equal((await events.next()).value?.seq, 1);
  const next = events.next();
  controller.abort();
  await assert.rejects(next, AbortedError);
});

test('a signal ends a stream at once, whatever has been received already', async (t) => {
  const { url } = await startEventServer(t, stream([delta(1, 'a'), delta(2, 'b'), done(3)]));
  const controller = new AbortController();
  const seen: number[] = [];
  const read = async () => {
    for await (const event of clientOf(url).jobEvents('job_1', { signal: controller.signal })) {
      seen.push(event.seq);
      controller.abort();
    }
  };
  await assert.rejects(read(), AbortedError);
  assert.deepEqual(seen, [1]);
});

test('a connection that falls silent is given up for another', async (t) => {
  const { url, resumedFrom } = await startEventServer(t, stream([delta(1, 'a')]), stream([delta(2, 'b'), done(3)]));
  const events = await all(clientOf(url).jobEvents('job_1', { silenceMs: 100 }));
  assert.equal(textOf(events), 'ab');
  assert.deepEqual(resumedFrom, [undefined, '1']);
});

test('a reader that is slow for longer than a silence keeps its connection', async (t) => {
  const { url, resumedFrom } = await startEventServer(t, async (res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.write(delta(1, 'a') + delta(2, 'b'));
    await tookItsTime;
    res.write(delta(3, 'c') + done(4));
  });
  let tell = () => {};
  const tookItsTime = new Promise<void>((resolve) => {
    tell = resolve;
  });
  const seen: number[] = [];
  for await (const event of clientOf(url).jobEvents('job_1', { silenceMs: 300 })) {
    seen.push(event.seq);
    if (event.seq !== 1) continue;
    await new Promise((resolve) => setTimeout(resolve, 600));
    tell();
  }
  assert.deepEqual(seen, [1, 2, 3, 4]);
  assert.deepEqual(resumedFrom, [undefined]);
});

test('the patience is for each outage, not for the stream', async (t) => {
  const outages = Array.from({ length: 6 }, (_, i) => [
    stream([delta(i + 1, 'x')], 'broken'),
    refuse(503, 'unavailable', { 'retry-after-ms': '200' }),
  ]);
  const { url } = await startEventServer(t, ...outages.flat(), stream([done(7)]));
  const client = clientOf(url, { patience: { budgetMs: 800 } });
  assert.equal((await all(client.jobEvents('job_1'))).length, 7);
});

test('who leaves the loop closes the connection', async (t) => {
  let closed: Promise<unknown> | undefined;
  const { url } = await startEventServer(t, (res, req) => {
    closed = once(res, 'close');
    stream([delta(1, 'a'), delta(2, 'b')])(res, req);
  });
  for await (const event of clientOf(url).jobEvents('job_1')) {
    if (event.seq === 1) break;
  }
  await closed;
});

test('a reader that takes its time holds the server back and loses nothing', async (t) => {
  const total = 3_000;
  const text = 'x'.repeat(8_000);
  let written = 0;
  const { url } = await startEventServer(t, async (res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    for (let seq = 1; seq <= total; seq += 1) {
      written = seq;
      if (!res.write(delta(seq, text))) await once(res, 'drain');
    }
    res.write(done(total + 1));
  });
  const events = clientOf(url).jobEvents('job_1');
  await events.next();
  // The reader does nothing now. What the server gets rid of must stop growing at what buffers between the two hold.
  let before = -1;
  while (before !== written) {
    before = written;
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
  assert.ok(written < total, `all ${total} events were taken from the server`);
  let seq = 1;
  for await (const event of events) {
    seq += 1;
    assert.equal(event.seq, seq);
  }
  assert.equal(seq, total + 1);
});
