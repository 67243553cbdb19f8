import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { createHttpServer, defaultLimits } from '../../src/http/server.ts';
import { atEnd } from '../helpers/cleanup.ts';
import { connectRaw, rawRequest } from '../helpers/raw-socket.ts';
import { startServer } from '../helpers/server.ts';
import { countOrders, testSql, until } from '../helpers/sql.ts';

const order = { line: 'POST /v1/orders', lines: ['Content-Type: application/json'], body: '{"cents":1,"item":"x"}' };

/** Opens so many connections that say nothing. */
async function idlers(port: number, count: number): Promise<Socket[]> {
  const sockets = Array.from({ length: count }, () => connect(port, '127.0.0.1'));
  for (const socket of sockets) socket.on('error', () => {});
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  return sockets;
}

test('2,000 connections that say nothing cost little memory, and whoever asks is served', async (t) => {
  const server = await startServer(t);
  const before = process.memoryUsage().rss;
  const sockets = await idlers(Number(new URL(server.url).port), 2_000);
  atEnd(t, () => {
    for (const socket of sockets) socket.destroy();
  });
  const answer = await server.call('POST /v1/orders', { key: 'between', body: { cents: 1, item: 'x' } });
  assert.equal(answer.status, 201);
  // Both ends are in this process.
  const grownMb = (process.memoryUsage().rss - before) / 2 ** 20;
  assert.ok(grownMb < 100, `${grownMb.toFixed(0)} MB`);
});

test('connections beyond the cap are closed at once, and as soon as one leaves the next is taken', async (t) => {
  const limits = { requestTimeoutMs: 1_000, ...defaultLimits, maxConnections: 3 };
  const server = createHttpServer(async (_req, res) => void res.end('served'), limits);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(t, () => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const taken = await idlers(port, 3);
  const [beyond] = await idlers(port, 1);
  const closed = once(beyond as Socket, 'close');
  (beyond as Socket).resume();
  await closed;

  taken[0]?.destroy();
  await until(async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/`)
      .then((got) => got.text())
      .catch(() => '');
    return answer === 'served';
  });
  for (const socket of taken) socket.destroy();
});

test('a client that closes its sending half is taken for gone; its retry learns what became of the order, once', async (t) => {
  const server = await startServer(t);
  const connection = await connectRaw(t, server.url);
  connection.send(await rawRequest({ ...order, lines: [...order.lines, 'Idempotency-Key: half-open-1'] }));
  connection.socket.end();
  await connection.closed;
  const body = JSON.parse(order.body);
  await until(async () => (await server.call('POST /v1/orders', { key: 'half-open-1', body })).status === 201);
  assert.equal(await countOrders(testSql(t, server.databaseUrl)), 1);
});
