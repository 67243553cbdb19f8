import { once } from 'node:events';
import { connect } from 'node:net';
import type { TestContext } from 'node:test';
import { atEnd } from './cleanup.ts';

/** An answer as it came over the wire. */
export type RawAnswer = {
  readonly status: number;
  /** The header lines in their order. */
  readonly lines: readonly string[];
  /** The values of one header, in the order of its lines. */
  values(name: string): readonly string[];
  readonly body: string;
};

/** A connection of the test's own: what is sent is sent as it is, byte for byte. */
export type RawConnection = {
  send(bytes: string | Buffer): void;
  /** The next answer; an answer to HEAD has no body. Rejects when the connection closes before it is whole. */
  answer(isHead?: boolean): Promise<RawAnswer>;
  /** Resolves when the server has closed it. */
  readonly closed: Promise<unknown>;
};

/** Opens a connection to a server. Strings are sent as latin1: one character, one byte. */
export async function connectRaw(t: TestContext, url: string): Promise<RawConnection> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  atEnd(t, () => socket.destroy());
  await once(socket, 'connect');
  let received = '';
  let isClosed = false;
  let notify = () => {};
  const closed = once(socket, 'close');
  socket.setEncoding('latin1');
  socket.on('error', () => {});
  socket.on('data', (text: string) => {
    received += text;
    notify();
  });
  void closed.then(() => {
    isClosed = true;
    notify();
  });

  const parse = (isHead: boolean): RawAnswer | undefined => {
    const end = received.indexOf('\r\n\r\n');
    if (end === -1) return undefined;
    const [statusLine = '', ...lines] = received.slice(0, end).split('\r\n');
    const values = (name: string) =>
      lines
        .filter((line) => line.toLowerCase().startsWith(`${name.toLowerCase()}:`))
        .map((line) => line.slice(name.length + 1).trim());
    const status = Number(statusLine.split(' ')[1]);
    const hasNone = isHead || status < 200 || status === 204 || status === 304;
    const length = hasNone ? 0 : Number(values('content-length')[0] ?? 0);
    if (received.length < end + 4 + length) return undefined;
    const body = received.slice(end + 4, end + 4 + length);
    received = received.slice(end + 4 + length);
    return { status, lines, values, body: Buffer.from(body, 'latin1').toString() };
  };

  return {
    closed,
    send: (bytes) => void socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes),
    async answer(isHead = false) {
      for (;;) {
        const parsed = parse(isHead);
        if (parsed !== undefined) return parsed;
        if (isClosed) throw new Error(`the connection closed after ${JSON.stringify(received)}`);
        await new Promise<void>((resolve) => {
          notify = resolve;
        });
      }
    },
  };
}

/** A request's head and body as they go over the wire, with the length of the body unless it is left out. */
export function rawRequest(line: string, headers: readonly string[], body?: string): string {
  const bytes = body === undefined ? '' : Buffer.from(body).toString('latin1');
  const length = body === undefined ? [] : [`Content-Length: ${bytes.length}`];
  return [`${line} HTTP/1.1`, 'Host: test', ...headers, ...length, '', bytes].join('\r\n');
}
