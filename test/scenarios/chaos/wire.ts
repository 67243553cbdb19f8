import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP proxy before Postgres: what a bad network does between a server and its database. */
export type Wire = {
  readonly port: number;
  /** Connections that are open now. */
  count(): number;
  /** The next piece of data on any connection, of either side, is cut in the middle and the connection with it. Resolves when it was. */
  cutHalfWay(): Promise<void>;
  /** Nothing goes through until it is called with false; what was sent meanwhile arrives then. */
  freeze(isFrozen: boolean): void;
  close(): Promise<void>;
};

/** Starts the proxy before 127.0.0.1:`targetPort`. */
export async function startWire(targetPort: number): Promise<Wire> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let cutter: (() => void) | undefined;
  let frozen = false;

  const server = createServer((client) => {
    const target = connect(targetPort, '127.0.0.1');
    const pair = [client, target] as const;
    pairs.add(pair);
    for (const [from, to] of [pair, [target, client] as const]) {
      from.on('error', () => {});
      from.on('data', (chunk) => {
        if (cutter !== undefined && chunk.length > 1) {
          const done = cutter;
          cutter = undefined;
          to.write(chunk.subarray(0, Math.floor(chunk.length / 2)), () => {
            for (const socket of pair) socket.resetAndDestroy();
            done();
          });
          return;
        }
        to.write(chunk);
      });
      from.on('close', () => {
        to.destroy();
        pairs.delete(pair);
      });
      if (frozen) from.pause();
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    port: (server.address() as AddressInfo).port,
    count: () => pairs.size,
    cutHalfWay: () =>
      new Promise((resolve) => {
        cutter = resolve;
      }),
    freeze(isFrozen) {
      frozen = isFrozen;
      for (const socket of [...pairs].flat()) {
        if (isFrozen) socket.pause();
        else socket.resume();
      }
    },
    async close() {
      for (const socket of [...pairs].flat()) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
