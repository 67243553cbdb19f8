import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openGate } from '../helpers/gate.ts';
import { freshDatabase, slowServerFile, startProcess, startServer } from '../helpers/server.ts';
import { countOrders, testSql, until } from '../helpers/sql.ts';
import { createDoor, createStage } from '../helpers/stage.ts';

const request = { key: 'k', body: { cents: 1 } };

test('7. SIGTERM: no new work is taken, running work finishes and is answered, the process ends by itself', async (t) => {
  const databaseUrl = await freshDatabase(t);
  const sql = testSql(t, databaseUrl);
  const gate = await openGate(t);
  const server = await startProcess(t, { DATABASE_URL: databaseUrl, GATE_URL: gate.url }, slowServerFile);
  const visitor = gate.hold('prepare', 'k');
  const running = server.call('POST /v1/test/slow', request);
  await visitor.arrived;

  const ended = server.end('SIGTERM');
  // Until the signal has come through, new work may still be taken; from then on none is.
  for (let n = 0; ; n += 1) {
    const outcome = await server.call('POST /v1/test/slow', { ...request, key: `new-${n}` }).catch(() => undefined);
    if (outcome?.status !== 201) {
      if (outcome !== undefined) assert.equal(outcome.status, 503);
      break;
    }
  }
  const taken = await countOrders(sql);
  visitor.open();
  const answer = await running;
  assert.equal(answer.status, 201, answer.text);
  assert.equal(answer.headers.get('connection'), 'close');
  assert.equal(await ended, 0);
  assert.equal((await countOrders(sql)) - taken, 1);
});

test('work beyond the grace of a SIGTERM is released: the next try elsewhere runs at once, not after the lease', async (t) => {
  const databaseUrl = await freshDatabase(t);
  const sql = testSql(t, databaseUrl);
  const gate = await openGate(t);
  const env = { DATABASE_URL: databaseUrl, GATE_URL: gate.url, SHUTDOWN_GRACE_MS: '100' };
  const leaving = await startProcess(t, env, slowServerFile);
  const other = await startServer(t, { databaseUrl, procedures: createStage().procedures });
  const visitor = gate.hold('after', 'k');
  const running = leaving.call('POST /v1/test/slow', request).catch(() => undefined);
  await visitor.arrived;
  assert.equal(await leaving.end('SIGTERM'), 0);
  const cut = await running;
  if (cut !== undefined) {
    assert.equal(cut.status, 503);
    assert.equal(cut.json.key_action, 'reuse');
  }
  const next = await other.call('POST /v1/test/slow', request);
  assert.equal(next.status, 201, next.text);
  assert.equal(next.headers.get('idempotent-replayed'), 'false');
  assert.equal(await countOrders(sql), 1);
});

test('a stop answers the parked duplicate at once, and the work it cuts after the grace with 503', async (t) => {
  const stage = createStage();
  const server = await startServer(t, { env: { SHUTDOWN_GRACE_MS: '400' }, procedures: stage.procedures });
  const sql = testSql(t, server.databaseUrl);
  const door = createDoor();
  let isCut = false;
  stage.on('k', {
    prepare(ctx) {
      ctx.signal.addEventListener('abort', () => {
        isCut = true;
        door.fail(new Error('cut'));
      });
      return door.pass();
    },
  });
  const running = server.call('POST /v1/test/slow', request);
  await door.arrived;
  const parked = server.call('POST /v1/test/slow', { ...request, headers: { prefer: 'wait=30' } });
  await until(() => server.keyed.waitingRoom.count() === 1);

  const stopped = server.stop();
  assert.equal((await parked).json.code, 'request_in_progress');
  assert.equal(isCut, false);
  // The stop's answer, whatever error the work ended in.
  const cut = await running;
  assert.equal(cut.status, 503);
  assert.equal(cut.json.code, 'unavailable');
  assert.equal(cut.headers.get('retry-after'), '1');
  await stopped;
  assert.equal(await countOrders(sql), 0);
  const rows = await sql`select lease_until <= now() as free, state from idem`;
  assert.deepEqual({ ...rows[0] }, { free: true, state: 'in_progress' });
});
