import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { freshDatabase } from '../helpers/server.ts';

const run = promisify(execFile);
const script = ['--import', 'tsx', 'scripts/demo-redelivery.ts'];

test('the demo of redelivery shows three deliveries that are one job, one call and one charge', async (t) => {
  const env = { ...process.env, DATABASE_URL: await freshDatabase(t) };
  const { stdout } = await run(process.execPath, [...script, '--latency', '200', '--tenant', 'queue'], { env });
  const delivered = stdout.split('\n').filter((line) => line.startsWith('delivered'));
  assert.deepEqual(
    delivered.map((line) => /created|duplicate/.exec(line)?.[0]),
    ['created', 'duplicate', 'duplicate'],
  );
  assert.equal(new Set(delivered.map((line) => /job_[0-9a-f]{32}/.exec(line)?.[0])).size, 1);
  assert.match(stdout, /3 deliveries, 1 job \(succeeded\), 1 call, 1 charge\.\n$/);
});

test('the demo of redelivery says how it is used, and refuses what it does not know', async () => {
  const { stdout } = await run(process.execPath, [...script, '--help']);
  assert.match(stdout, /^Usage: npm run demo:redelivery/);
  await assert.rejects(run(process.execPath, [...script, '--latency', 'soon']), { code: 2 });
});
