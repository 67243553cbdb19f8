import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Called, type CallOptions, freshDatabase, startProcess, startServer } from '../helpers/server.ts';
import { countOrders, testSql } from '../helpers/sql.ts';

const copies = 200;

/** Sends the copies of one order to the servers in turn and answers them all. */
async function sendCopies(
  key: string,
  servers: readonly { call(line: string, options?: CallOptions): Promise<Called> }[],
): Promise<Called[]> {
  return await Promise.all(
    Array.from({ length: copies }, (_, i) =>
      (servers[i % servers.length] as (typeof servers)[number]).call('POST /v1/orders', {
        key,
        body: { cents: 3_000, item: 'pro-plan' },
      }),
    ),
  );
}

/** One ran, and every other one was told so: nobody got another answer, and nobody an error. */
function assertOneEffect(answers: readonly Called[]): void {
  const created = answers.filter((answer) => answer.status === 201);
  const firsts = created.filter((answer) => answer.headers.get('idempotent-replayed') === 'false');
  assert.equal(firsts.length, 1);
  for (const answer of created) assert.equal(answer.text, firsts[0]?.text);
  for (const answer of answers) {
    if (answer.status !== 201) assert.equal(`${answer.status} ${answer.json.code}`, '409 request_in_progress');
  }
}

test('9. 200 parallel copies of one POST through one process: one order and nothing but 201 and 409', async (t) => {
  const databaseUrl = await freshDatabase(t);
  const sql = testSql(t, databaseUrl);
  for (const pool of ['1', '50']) {
    const server = await startServer(t, { databaseUrl, env: { DB_POOL_MAX: pool } });
    const before = await countOrders(sql);
    assertOneEffect(await sendCopies(`pool-${pool}`, [server]));
    assert.equal((await countOrders(sql)) - before, 1, `pool of ${pool}`);
  }
});

test('9. 200 parallel copies of one POST through two processes on one database: one order, no 5xx', async (t) => {
  const databaseUrl = await freshDatabase(t);
  const sql = testSql(t, databaseUrl);
  const servers = await Promise.all(
    ['1', '50'].map((pool) => startProcess(t, { DATABASE_URL: databaseUrl, DB_POOL_MAX: pool, LOG_LEVEL: 'warn' })),
  );
  for (let round = 0; round < 3; round += 1) {
    const before = await countOrders(sql);
    assertOneEffect(await sendCopies(`round-${round}`, servers));
    assert.equal((await countOrders(sql)) - before, 1);
  }
});
