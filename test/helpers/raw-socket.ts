import { connect, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { atEnd } from './cleanup.ts';
import { testToken } from './server.ts';

/** An answer as it came off the wire. */
export type RawAnswer = {
  readonly status: number;
  /** Lower-case names; the values of repeated ones joined by a line feed. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test asserts on whatever is there.
  readonly json: any;
};

/** A connection on which a test says exactly what is sent. */
export type RawConnection = {
  readonly socket: Socket;
  send(bytes: string | Uint8Array): void;
  /** The next answer; rejects when the connection ends before it is whole. `isHead`: it has no body. */
  answer(isHead?: boolean): Promise<RawAnswer>;
  /** Resolves when the server has closed the connection. */
  readonly closed: Promise<void>;
};

/** Connects to a server of the test. */
export async function connectRaw(t: TestContext, url: string): Promise<RawConnection> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let buffer = Buffer.alloc(0);
  let isOver = false;
  let wake = () => {};
  socket.on('data', (chunk) => {
    buffer = Buffer.concat([buffer, chunk]);
    wake();
  });
  const closed = new Promise<void>((resolve) => {
    socket.on('error', () => {});
    socket.on('close', () => {
      isOver = true;
      wake();
      resolve();
    });
  });
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', reject);
  });
  atEnd(t, () => socket.destroy());
  return {
    socket,
    send: (bytes) => void socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes),
    closed,
    async answer(isHead = false) {
      for (;;) {
        const taken = takeAnswer(buffer, isHead);
        if (taken !== undefined) {
          buffer = buffer.subarray(taken.length);
          return taken.answer;
        }
        if (isOver) throw new Error(`the connection ended after: ${buffer.toString('latin1').slice(0, 500)}`);
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}

/** The first whole answer in the bytes; an interim one (1xx) is an answer without a body. */
function takeAnswer(bytes: Buffer, isHead: boolean): { answer: RawAnswer; length: number } | undefined {
  const end = bytes.indexOf('\r\n\r\n');
  if (end === -1) return undefined;
  const [first = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    headers[name] = headers[name] === undefined ? value : `${headers[name]}\n${value}`;
  }
  const status = Number(first.split(' ')[1]);
  const isBodiless = isHead || status < 200 || status === 204 || status === 304;
  const bodyLength = isBodiless ? 0 : Number(headers['content-length'] ?? 0);
  if (bytes.length < end + 4 + bodyLength) return undefined;
  const text = bytes.subarray(end + 4, end + 4 + bodyLength).toString('utf8');
  const isJson = /json/.test(headers['content-type'] ?? '') && text !== '';
  return {
    answer: { status, headers, text, json: isJson ? JSON.parse(text) : undefined },
    length: end + 4 + bodyLength,
  };
}

/** What a raw request is made of; header lines are sent as they are. */
export type RawRequest = {
  readonly line: string;
  readonly lines?: readonly string[];
  /** With its Content-Length, unless `lines` say how it is framed. */
  readonly body?: string | Uint8Array;
  readonly tenant?: string;
  /** False: no Authorization line. */
  readonly isAuthorized?: boolean;
};

/** A request's bytes: Host, a token, the given lines, the body. */
export async function rawRequest(request: RawRequest): Promise<Buffer> {
  const { lines = [], body, tenant = 'acme' } = request;
  const bytes = body === undefined ? Buffer.alloc(0) : Buffer.from(body);
  const isFramed = lines.some((line) => /^(content-length|transfer-encoding):/i.test(line));
  const head = [
    `${request.line} HTTP/1.1`,
    'Host: test',
    ...(request.isAuthorized === false ? [] : [`Authorization: Bearer ${await testToken({ tenant })}`]),
    ...(body === undefined || lines.some((line) => /^content-type:/i.test(line))
      ? []
      : ['Content-Type: application/json']),
    ...(body === undefined || isFramed ? [] : [`Content-Length: ${bytes.length}`]),
    ...lines,
    '',
    '',
  ].join('\r\n');
  return Buffer.concat([Buffer.from(head, 'latin1'), bytes]);
}

/** Sends one request on a connection of its own and answers what comes back. */
export async function exchange(t: TestContext, url: string, request: RawRequest): Promise<RawAnswer> {
  const connection = await connectRaw(t, url);
  try {
    connection.send(await rawRequest(request));
    return await connection.answer(request.line.startsWith('HEAD '));
  } finally {
    connection.socket.destroy();
  }
}
