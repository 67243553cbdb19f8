import assert from 'node:assert/strict';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { type Called, startServer, type TestServer } from '../helpers/server.ts';

/** A request whose Host may be any; `fetch` sends its own. */
async function get(server: TestServer, path: string, headers: Record<string, string> = {}) {
  const { hostname, port } = new URL(server.url);
  return await new Promise<{ status: number; body: string }>((resolve, reject) => {
    const sent = request({ hostname, port, path, headers, agent: false }, async (answer) => {
      resolve({ status: answer.statusCode ?? 0, body: await text(answer) });
    });
    sent.once('error', reject).end();
  });
}

const open = (server: TestServer, path: string, headers: Record<string, string> = {}) =>
  server.call(`GET ${path}`, { token: null, headers });

test('the page and its files: strong tags, 304, a long cache only where the name has a hash, a strict policy', async (t) => {
  const server = await startServer(t, { offersTokens: true });
  const page = await open(server, '/');
  const namesOf = ({ text: html }: Called) =>
    [...html.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, name]) => name);
  const [first = '', second = ''] = namesOf(page).filter((name) => name !== undefined);

  await t.test('the document is asked for each time, and not sent again when it is the same', async () => {
    assert.equal(page.status, 200);
    assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8');
    assert.equal(page.headers.get('cache-control'), 'no-cache');
    const tag = page.headers.get('etag') ?? '';
    assert.match(tag, /^"[\w-]{20,}"$/);
    const again = await open(server, '/', { 'if-none-match': tag });
    assert.deepEqual([again.status, again.text, again.headers.get('etag')], [304, '', tag]);
    assert.equal((await open(server, '/', { 'if-none-match': '"other"' })).status, 200);
  });

  await t.test('script and style are kept for a year under a name that has their hash', async () => {
    assert.match(`${first} ${second}`, /-[\w-]{20,}\.css .*-[\w-]{20,}\.js|-[\w-]{20,}\.js .*-[\w-]{20,}\.css/);
    for (const name of [first, second]) {
      const file = await open(server, name);
      assert.equal(file.headers.get('cache-control'), 'public, max-age=31536000, immutable');
      assert.equal((await open(server, name, { 'if-none-match': file.headers.get('etag') ?? '' })).status, 304);
    }
    assert.equal((await open(server, '/assets/page-0.js')).status, 404);
  });

  await t.test('the script can be read: neither minified nor without its words', async () => {
    const script = await open(server, first.endsWith('.js') ? first : second);
    assert.match(script.text, /function createClient\(options\) \{\n/);
    assert.match(script.text, /Send the same order up to five times/);
  });

  await t.test('the policy allows our own files alone, and no framing', async () => {
    const policy = page.headers.get('content-security-policy') ?? '';
    assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self'; /);
    assert.doesNotMatch(policy, /unsafe|\*|https?:/);
    assert.match(policy, /frame-ancestors 'none'/);
    assert.equal(page.headers.get('x-content-type-options'), 'nosniff');
    assert.doesNotMatch(page.text, /<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=/);
  });

  await t.test('the charts are there without a hash and so are asked for each time', async () => {
    const chart = await open(server, '/charts/locking.svg');
    assert.deepEqual([chart.status, chart.headers.get('cache-control')], [200, 'no-cache']);
    // Opened by itself it keeps its colours, and no more is let in.
    assert.match(
      chart.headers.get('content-security-policy') ?? '',
      /^default-src 'none'; style-src 'unsafe-inline'; frame-/,
    );
    assert.equal((await open(server, '/charts/..%2F..%2Fpackage.json')).status, 404);
  });
});

test('tokens are offered to this machine’s own page alone', async (t) => {
  const server = await startServer(t, { offersTokens: true, env: { CORS_ORIGINS: 'https://app.example.com' } });
  const port = new URL(server.url).port;
  const asked = async (headers: Record<string, string>) => (await get(server, '/dev/tokens', headers)).status;

  await t.test('to a page of ours and to curl', async () => {
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, '[::1]:80'])
      assert.equal(await asked({ host }), 200, host);
    assert.equal(await asked({ 'sec-fetch-site': 'same-origin' }), 200);
    const { body } = await get(server, '/dev/tokens');
    const [{ token }] = JSON.parse(body) as [{ token: string }];
    assert.equal((await server.call('GET /v1/orders', { token })).status, 200);
  });

  await t.test('not under a foreign name, which somebody may have made resolve to this machine', async () => {
    const names = ['evil.example', '127.0.0.1.evil.example', 'localhost.evil.example', '10.0.0.1', 'evil.example:80'];
    for (const host of names) assert.equal(await asked({ host }), 404, host);
  });

  await t.test('not to a page of another origin, allowed for the API or not', async () => {
    assert.equal(await asked({ origin: 'https://app.example.com', 'sec-fetch-site': 'cross-site' }), 404);
    assert.equal(await asked({ origin: 'https://app.example.com' }), 404);
    assert.equal(await asked({ 'sec-fetch-site': 'cross-site' }), 404);
    assert.equal(await asked({ 'sec-fetch-site': 'same-site' }), 404);
  });

  await t.test('not through a proxy, behind which everybody seems to be on this machine', async () => {
    for (const header of ['x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'forwarded', 'via']) {
      assert.equal(await asked({ [header]: 'for=203.0.113.7' }), 404, header);
    }
  });
});

test('a server with a secret of its own has no tokens to offer, and still has the page', async (t) => {
  const server = await startServer(t);
  assert.equal((await open(server, '/dev/tokens')).status, 404);
  assert.equal((await open(server, '/')).status, 200);
});
