import assert from 'node:assert/strict';
import test from 'node:test';
import { nginx, startNginx } from '../helpers/nginx.ts';
import { call, startServer } from '../helpers/server.ts';

const skip = nginx === undefined ? 'no nginx' : false;
const gzip = { http: 'gzip on; gzip_types application/json; gzip_min_length 1; gzip_proxied any;' };

test('34: behind nginx with gzip a tag round-trips from GET to PUT, and 304 works', { skip }, async (t) => {
  const server = await startServer(t);
  const url = await startNginx(t, [server.url], gzip);
  const body = { title: 'A title', body: 'long enough to compress '.repeat(200) };
  const created = await call(url, 'PUT /v1/docs/c_1', { body, headers: { 'if-none-match': '*' } });
  assert.equal(created.status, 201);

  const read = await call(url, 'GET /v1/docs/c_1', { headers: { 'accept-encoding': 'gzip' } });
  assert.equal(read.headers.get('content-encoding'), 'gzip', 'nginx did compress it');
  const tag = read.headers.get('etag') as string;
  assert.equal((await call(url, 'GET /v1/docs/c_1', { headers: { 'if-none-match': tag } })).status, 304);

  const written = await call(url, 'PUT /v1/docs/c_1', {
    body: { ...body, title: 'Another' },
    headers: { 'if-match': tag },
  });
  assert.equal(written.status, 200);
  assert.equal((await call(url, 'PUT /v1/docs/c_1', { body, headers: { 'if-match': tag } })).status, 412);
  assert.equal((await call(url, 'GET /v1/docs/c_1', { headers: { 'if-none-match': tag } })).status, 200);
});

test('34: a gateway that strengthens or weakens a tag does no harm', async (t) => {
  const server = await startServer(t);
  const body = { title: 'A title', body: '' };
  const created = await server.call('PUT /v1/docs/c_1', { body, headers: { 'if-none-match': '*' } });
  const strong = (created.headers.get('etag') as string).replace('W/', '');
  assert.equal((await server.call('GET /v1/docs/c_1', { headers: { 'if-none-match': strong } })).status, 304);
  assert.equal(
    (await server.call('PUT /v1/docs/c_1', { body: { ...body, title: 'B' }, headers: { 'if-match': strong } })).status,
    200,
  );
});
