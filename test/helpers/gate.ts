import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { atEnd } from './cleanup.ts';

/** A moment in the life of a slow request: before its transaction, or inside it, before or after its order is written. */
export type Moment = 'prepare' | 'before' | 'after';

/** Somebody in another process who waits to be let on. */
export type Visitor = {
  /** Resolves when the visitor has come. */
  readonly arrived: Promise<void>;
  open(): void;
  /** Makes the visitor throw. */
  fail(): void;
};

/** Where the slow requests of other processes ask whether they may go on. */
export type Gate = {
  readonly url: string;
  /** The next one who comes with this key at this moment waits; everybody else passes. */
  hold(moment: Moment, key: string): Visitor;
};

/** Opens a gate for `slow-server.ts` (its variable `GATE_URL`). */
export async function openGate(t: TestContext): Promise<Gate> {
  const holds = new Map<string, (res: ServerResponse) => void>();
  const server = createServer((req, res) => {
    const name = decodeURIComponent(req.url ?? '');
    const hold = holds.get(name);
    holds.delete(name);
    if (hold === undefined) res.end('open');
    else hold(res);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(t, async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    hold(moment, key) {
      let answer = (_word: string) => {};
      const arrived = new Promise<void>((resolve) => {
        holds.set(`/${moment}/${key}`, (res) => {
          answer = (word) => void res.end(word);
          resolve();
        });
      });
      return { arrived, open: () => answer('open'), fail: () => answer('fail') };
    },
  };
}

/** The other side: waits at the gate; throws when the test says so. */
export async function passGate(gateUrl: string, moment: Moment, key: string): Promise<void> {
  const response = await fetch(`${gateUrl}/${moment}/${encodeURIComponent(key)}`);
  if ((await response.text()) === 'fail') throw new Error('the test made this request fail');
}
