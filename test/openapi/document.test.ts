import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import SwaggerParser from '@apidevtools/swagger-parser';
import { contract } from '../../src/protocol/contract.ts';
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
