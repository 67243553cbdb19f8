import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Provider } from '../../src/llm/provider.ts';
import { createJob, openStream } from '../helpers/jobs.ts';
import { nginx, startNginx } from '../helpers/nginx.ts';
import { call, startServer } from '../helpers/server.ts';
import { createDoor } from '../helpers/stage.ts';

const skip = nginx === undefined ? 'no nginx' : false;
/** Everything that may hold an answer back, or change it. */
const buffering = {
  http: 'gzip on; gzip_types application/json text/event-stream; gzip_min_length 1; gzip_proxied any;',
  location: 'proxy_buffering on; proxy_buffers 8 64k; proxy_buffer_size 64k;',
};

test('through nginx with gzip and buffering a stream is read as it is written', {
  skip,
  timeout: 30_000,
}, async (t) => {
  const door = createDoor();
  const provider: Provider = {
    name: 'door',
    async *generate({ onSent }) {
      onSent?.();
      yield { kind: 'text', text: 'one', tokens: 1 };
      await door.pass();
      yield { kind: 'text', text: ' two', tokens: 1 };
      yield { kind: 'end', finish: 'stop' };
    },
  };
  const server = await startServer(t, { provider, seedCredits: true });
  const url = await startNginx(t, [server.url], buffering);
  const id = await createJob({ url }, 'k', 'x');

  const plain = await openStream({ url }, id, { headers: { 'accept-encoding': 'identity' } });
  const zipped = await openStream({ url }, id, { headers: { 'accept-encoding': 'gzip' } });
  // Were one of them held back, it would wait for a text that is waited for here.
  assert.equal((await plain.until('delta')).data.text, 'one');
  assert.equal((await zipped.until('delta')).data.text, 'one');
  door.open();
  const events = await plain.rest();
  assert.equal(events.at(-1)?.event, 'done');
  assert.deepEqual(await zipped.rest(), events);
});

test('through nginx with gzip and buffering a job has a tag that is compared, and changes with the job', {
  skip,
}, async (t) => {
  const server = await startServer(t, { seedCredits: true });
  const url = await startNginx(t, [server.url], buffering);
  const id = await createJob({ url }, 'k', 'x');
  const read = (tag?: string) =>
    call(url, `GET /v1/jobs/${id}`, { headers: { 'accept-encoding': 'gzip', ...(tag && { 'if-none-match': tag }) } });
  const first = await read();
  await (await openStream({ url }, id)).rest();
  const last = await read(first.headers.get('etag') as string);
  assert.equal(last.status, 200, 'what has changed is not held for unchanged');
  assert.equal(last.json.status, 'succeeded');
  const again = await read(last.headers.get('etag') as string);
  assert.equal(again.status, 304);
  assert.equal(again.text, '');
});
