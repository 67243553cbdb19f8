import { createServer, connect as dial, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { atEnd } from './cleanup.ts';

/** What the network does to one request. */
export type Fault =
  | { readonly kind: 'pass' }
  /** Closed before anything is forwarded; `reset`: by RST. */
  | { readonly kind: 'refuse'; readonly reset?: true }
  /** Forwarded, and the whole answer swallowed; then closed; `reset`: by RST. */
  | { readonly kind: 'drop_answer'; readonly reset?: true }
  /** The answer is swallowed, or the request not even forwarded; the connection stays open until the client gives up. */
  | { readonly kind: 'hang'; readonly what?: 'request' | 'answer' }
  /** The answer's head and so many bytes of its body, then closed. */
  | { readonly kind: 'cut_answer'; readonly bodyBytes: number; readonly reset?: true }
  /** Held back for so long before it is forwarded, or its answer before it is handed on. */
  | { readonly kind: 'delay'; readonly ms: number; readonly what?: 'request' | 'answer' }
  /** Sent to the server twice at the same moment; the answer is that of the first copy. */
  | { readonly kind: 'duplicate' }
  /** Answered by the proxy, with these raw bytes; not forwarded. */
  | { readonly kind: 'answer'; readonly bytes: string };

/** A request as it went through. */
export type Passage = {
  /** `POST /v1/orders` */
  readonly line: string;
  /** Names in lower case; of several lines the last. */
  readonly headers: Readonly<Record<string, string>>;
  /** What followed the head, as it was sent. */
  readonly body: () => string;
  readonly fault: Fault;
  /** Resolves when the server's answer has arrived at the proxy whole, whatever the client gets of it. */
  readonly answered: Promise<void>;
};

/** A TCP proxy before a server. One connection carries one request: what happens to it is decided per request. */
export type FaultProxy = {
  readonly url: string;
  /** Everything that came, in order. */
  readonly passages: readonly Passage[];
  /** Faults for the next requests, one each; after them requests pass. */
  next(...faults: Fault[]): void;
  /** Decides for each request for which no fault is waiting. */
  decide(judge: (line: string, headers: Readonly<Record<string, string>>) => Fault): void;
  /** Where requests are sent from now on: the address of a server that took over. */
  retarget(url: string): void;
  /** Cuts every connection that is open now. */
  cutAll(): void;
};

const pass: Fault = { kind: 'pass' };
const headEnd = '\r\n\r\n';

/** Starts a proxy before the server at `targetUrl`; it is gone after the test. */
export async function startFaultProxy(t: TestContext, targetUrl: string): Promise<FaultProxy> {
  const queue: Fault[] = [];
  const passages: Passage[] = [];
  const open = new Set<Socket>();
  let judge: Parameters<FaultProxy['decide']>[0] = () => pass;
  let target = new URL(targetUrl);
  const cutAll = () => {
    for (const socket of open) socket.destroy();
  };
  const track = (socket: Socket) => {
    open.add(socket);
    // Broken connections are what this is for.
    socket.on('error', () => {});
    socket.on('close', () => open.delete(socket));
    return socket;
  };
  const backend = () => track(dial({ host: target.hostname, port: Number(target.port) }));

  const server = createServer((client) => {
    track(client);
    let received = Buffer.alloc(0);
    const readHead = (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      const end = received.indexOf(headEnd);
      if (end === -1) return;
      client.off('data', readHead);
      const { line, headers, raw } = parseHead(received.subarray(0, end).toString('latin1'));
      const fault = queue.shift() ?? judge(line, headers);
      const body: Buffer[] = [received.subarray(end + headEnd.length)];
      client.on('data', (more) => body.push(more));
      const answered = play(client, fault, Buffer.concat([Buffer.from(raw, 'latin1'), ...body]), backend);
      passages.push({ line, headers, body: () => Buffer.concat(body).toString(), fault, answered });
    };
    client.on('data', readHead);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(t, async () => {
    cutAll();
    await new Promise((resolve) => server.close(resolve));
  });
  const address = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${address.port}`,
    passages,
    next: (...faults) => void queue.push(...faults),
    decide(decision) {
      judge = decision;
    },
    retarget(url) {
      target = new URL(url);
    },
    cutAll,
  };
}

/** The head, and as it is forwarded: one request a connection, so that the answer ends where the server closes. */
function parseHead(text: string): { line: string; headers: Record<string, string>; raw: string } {
  const [first = '', ...lines] = text.split('\r\n');
  const kept = lines.filter((line) => !/^(connection|keep-alive):/i.test(line));
  const headers = Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  const raw = [first, ...kept, 'Connection: close'].join('\r\n') + headEnd;
  return { line: first.replace(/ HTTP\/1\.[01]$/, ''), headers, raw };
}

/** Does to one request what its fault says; `sent` is what has come of it so far. Resolves with the server's whole answer. */
async function play(client: Socket, fault: Fault, sent: Buffer, backend: () => Socket): Promise<void> {
  switch (fault.kind) {
    case 'refuse':
      close(client, fault.reset);
      return;
    case 'answer':
      client.end(fault.bytes);
      return;
    case 'pass':
      return await forward(
        client,
        sent,
        backend(),
        (chunk) => client.write(chunk),
        () => client.end(),
      );
    case 'drop_answer':
      return await forward(
        client,
        sent,
        backend(),
        () => true,
        () => close(client, fault.reset),
      );
    case 'hang':
      if (fault.what === 'request') return;
      return await forward(
        client,
        sent,
        backend(),
        () => true,
        () => {},
      );
    case 'cut_answer': {
      const cut = cutter(client, fault.bodyBytes, () => close(client, fault.reset));
      return await forward(client, sent, backend(), cut, () => close(client, fault.reset));
    }
    case 'delay': {
      if (fault.what === 'answer') {
        const answer: Buffer[] = [];
        const hold = (chunk: Buffer) => answer.push(chunk) > 0;
        await forward(client, sent, backend(), hold, () => {});
        await sleep(fault.ms);
        client.end(Buffer.concat(answer));
        return;
      }
      client.pause();
      await sleep(fault.ms);
      client.resume();
      return await forward(
        client,
        sent,
        backend(),
        (chunk) => client.write(chunk),
        () => client.end(),
      );
    }
    case 'duplicate': {
      const twin = forward(
        client,
        sent,
        backend(),
        () => true,
        () => {},
      );
      await forward(
        client,
        sent,
        backend(),
        (chunk) => client.write(chunk),
        () => client.end(),
      );
      return await twin;
    }
  }
}

/** The request to the server as it comes, the answer to `onChunk` (false: wait for the client to drain); resolves at its end. */
function forward(
  client: Socket,
  sent: Buffer,
  server: Socket,
  onChunk: (chunk: Buffer) => boolean,
  onEnd: () => void,
): Promise<void> {
  server.write(sent);
  client.on('data', (chunk) => server.write(chunk));
  client.on('close', () => server.destroy());
  client.on('drain', () => server.resume());
  server.on('data', (chunk) => {
    if (!onChunk(chunk)) server.pause();
  });
  return new Promise((resolve) => {
    server.on('close', () => {
      onEnd();
      resolve();
    });
  });
}

/** Hands on the head and `bodyBytes` more, then calls `onCut`. */
function cutter(client: Socket, bodyBytes: number, onCut: () => void): (chunk: Buffer) => boolean {
  let head = Buffer.alloc(0);
  let left: number | undefined;
  return (chunk) => {
    let body = chunk;
    if (left === undefined) {
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf(headEnd);
      if (end === -1) return true;
      left = bodyBytes;
      client.write(head.subarray(0, end + headEnd.length));
      body = head.subarray(end + headEnd.length);
    }
    if (left < 0) return true;
    if (body.length < left) {
      left -= body.length;
      client.write(body);
      return true;
    }
    client.write(body.subarray(0, left), onCut);
    left = -1;
    return true;
  };
}

function close(socket: Socket, reset: true | undefined): void {
  if (reset) socket.resetAndDestroy();
  else socket.destroy();
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
