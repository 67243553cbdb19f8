import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ErrorCode, errorCodes, errorEntry, problem } from '../../src/protocol/errors.ts';
import { formatProblem } from '../../src/protocol/problem.ts';

test('an error says after how long a retry may help exactly where waiting helps, also when its thrower did not', () => {
  for (const code of Object.keys(errorCodes) as ErrorCode[]) {
    const { headers } = formatProblem(problem(code), { isKeyed: true });
    const waits = errorEntry(code).retry === 'wait';
    assert.equal('Retry-After' in headers, waits, code);
    assert.equal('retry-after-ms' in headers, waits, code);
    assert.ok(!waits || Number(headers['Retry-After']) >= 1, code);
  }
  const hopeless = formatProblem(problem('unavailable', { shouldRetry: false }), { isKeyed: true });
  assert.deepEqual([hopeless.headers['Retry-After'], hopeless.headers['x-should-retry']], [undefined, 'false']);
});
