import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import test from 'node:test';
import { chromiumPath, newProfile } from '../helpers/chromium.ts';
import { startServer, testToken } from '../helpers/server.ts';

const skip = chromiumPath === undefined ? 'no Chromium' : false;

test('34a: two tenants in one browser profile never see each other’s document, nor pass the other’s tag', {
  skip,
}, async (t) => {
  const page = createServer((_req, res) =>
    res.setHeader('content-type', 'text/html').end('<!doctype html><title>x</title>'),
  );
  await new Promise<void>((resolve) => page.listen(0, '127.0.0.1', resolve));
  t.after(() => page.close());
  const origin = `http://127.0.0.1:${(page.address() as { port: number }).port}`;
  const server = await startServer(t, { env: { CORS_ORIGINS: origin } });
  const tokens = { acme: await testToken({ tenant: 'acme' }), globex: await testToken({ tenant: 'globex' }) };
  for (const tenant of ['acme', 'globex'] as const) {
    const body = { title: `of ${tenant}`, body: 'x'.repeat(2_000) };
    const made = await server.call('PUT /v1/docs/shared-id', { tenant, body, headers: { 'if-none-match': '*' } });
    assert.equal(made.status, 201);
  }

  const profile = await newProfile(t);
  const tab = await profile.newPage();
  await tab.goto(origin);
  /** What the page's own fetch gets, the browser's cache between. */
  const read = (token: string, headers: Record<string, string> = {}) =>
    tab.evaluate(
      async ([url, bearer, extra]) => {
        const answer = await fetch(url, { headers: { authorization: `Bearer ${bearer}`, ...extra } });
        const text = await answer.text();
        return {
          status: answer.status,
          title: text === '' ? undefined : JSON.parse(text).title,
          etag: answer.headers.get('etag'),
        };
      },
      [`${server.url}/v1/docs/shared-id`, token, headers] as const,
    );

  const first = await read(tokens.acme);
  assert.equal(first.title, 'of acme');
  const second = await read(tokens.globex);
  assert.equal(second.title, 'of globex', 'the cache did not answer with the other tenant’s body');
  assert.notEqual(first.etag, second.etag);
  assert.equal((await read(tokens.acme)).title, 'of acme');
  // The page sends the other tenant's tag by hand: it matches nothing of one's own.
  const stale = await read(tokens.globex, { 'if-none-match': first.etag as string });
  assert.deepEqual([stale.status, stale.title], [200, 'of globex']);
  const own = await read(tokens.globex, { 'if-none-match': second.etag as string });
  assert.equal(own.status, 304);
  const write = await server.call('PUT /v1/docs/shared-id', {
    tenant: 'globex',
    body: { title: 'stolen', body: '' },
    headers: { 'if-match': first.etag as string },
  });
  assert.equal(write.status, 412);
  // The browser did revalidate by itself: some answers to it were 304.
  const statuses = server.logLines
    .filter((line) => line.message === 'request' && line.method === 'GET')
    .map((line) => line.status);
  assert.ok(statuses.includes(304));
});
