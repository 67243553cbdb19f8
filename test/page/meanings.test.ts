import assert from 'node:assert/strict';
import { test } from 'node:test';
import { curlOf, type Exchange } from '../../src/page/web/exchange.ts';
import { meaningOf } from '../../src/page/web/meanings.ts';
import { errorCodes } from '../../src/protocol/errors.ts';

const exchange = (part: Partial<Exchange>): Exchange => ({
  method: 'POST',
  url: 'http://127.0.0.1/v1/orders',
  requestHeaders: [],
  requestBody: undefined,
  status: 200,
  answerHeaders: [],
  answerBody: '{}',
  ms: 1,
  ...part,
});

test('each of 304, 409, 412 and 428 is told in a sentence of its own, the two kinds of 409 apart', () => {
  const codes = [
    'request_in_progress',
    'idempotency_key_reused',
    'precondition_failed',
    'precondition_required',
  ] as const;
  const errors = codes.map((code) =>
    exchange({ status: errorCodes[code].status, answerBody: JSON.stringify({ code }) }),
  );
  const meanings = [...errors, exchange({ status: 304, answerBody: '' })].map(meaningOf);
  assert.equal(new Set(meanings).size, meanings.length);
  for (const meaning of meanings) assert.match(meaning ?? '', /^[A-Z].{20,}\.$/);
});

test('a replay and an answer that never came are told as such', () => {
  assert.match(meaningOf(exchange({ status: 201, answerHeaders: [['idempotent-replayed', 'true']] })) ?? '', /replay/);
  assert.match(meaningOf(exchange({ status: undefined, answerBody: undefined })) ?? '', /nobody knows/);
  assert.equal(meaningOf(exchange({ status: 201, answerHeaders: [['idempotent-replayed', 'false']] })), undefined);
});

test('a curl line holds what a shell would take apart', () => {
  const line = curlOf(
    exchange({ requestHeaders: [['if-match', 'W/"it\'s $HOME"']], requestBody: '{"a":"`x` \'y\'"}' }),
  );
  assert.equal(
    line,
    `curl -i -X POST 'http://127.0.0.1/v1/orders' -H 'if-match: W/"it'\\''s $HOME"' --data-binary '{"a":"\`x\` '\\''y'\\''"}'`,
  );
  assert.match(curlOf(exchange({ method: 'GET', answerBody: undefined })), /^curl -iN 'http/);
});
