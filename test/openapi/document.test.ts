import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import SwaggerParser from '@apidevtools/swagger-parser';
import { contract } from '../../src/protocol/contract.ts';
import { type ErrorCode, errorCodes, problem } from '../../src/protocol/errors.ts';
import { formatProblem } from '../../src/protocol/problem.ts';
import { startServer } from '../helpers/server.ts';

test('what a server answers on /openapi.json is the file of the docs, and valid OpenAPI 3.1 with every reference in place', async (t) => {
  const server = await startServer(t);
  const served = await server.call('GET /openapi.json', { token: null });
  assert.equal(served.status, 200);
  const file = await readFile(new URL('../../docs/openapi.json', import.meta.url), 'utf8');
  assert.deepEqual(served.json, JSON.parse(file));

  const document = await SwaggerParser.validate(served.json);
  assert.ok('openapi' in document && document.openapi.startsWith('3.1.'));
  const operations = Object.values(document.paths ?? {}).flatMap((path) =>
    Object.values(path ?? {}).map((operation) => (operation as { operationId?: string }).operationId),
  );
  for (const name of Object.keys(contract)) assert.ok(operations.includes(name), `${name} is documented`);
});

test('the link of every error leads to the entry of its code, on the server and in the docs', async (t) => {
  const server = await startServer(t);
  const refused = await server.call('GET /v1/orders', { token: null });
  const page = await server.call(`GET ${refused.json.type}`, { token: null });
  assert.deepEqual([page.status, page.headers.get('content-type')], [200, 'text/html; charset=utf-8']);
  const markdown = await readFile(new URL('../../docs/errors.md', import.meta.url), 'utf8');
  const anchors = [...page.text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
  const headings = [...markdown.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading);
  const links = (Object.keys(errorCodes) as ErrorCode[]).map((code) => {
    const link = new URL(String(formatProblem(problem(code), { isKeyed: false }).body.type), server.url);
    assert.equal(link.pathname, '/docs/errors');
    return link.hash.slice(1);
  });
  assert.deepEqual(anchors, links);
  assert.deepEqual(headings, links);
  const reference = await readFile(new URL('../../docs/api.md', import.meta.url), 'utf8');
  for (const [, anchor = ''] of reference.matchAll(/\(errors\.md#([^)]+)\)/g))
    assert.ok(links.includes(anchor), anchor);
});
