import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type ErrorCode, problem } from '../protocol/errors.ts';
import { problemReply } from './problem-reply.ts';
import { sendReply } from './reply.ts';

/** Handles one request; must not throw. `expectsContinue`: the client waits for 100 before it sends its body. */
export type Handle = (req: IncomingMessage, res: ServerResponse, expectsContinue: boolean) => Promise<void>;

/** Bounds of the parser and the sockets. */
export type ServerLimits = {
  /** Receiving head and body, milliseconds. */
  readonly requestTimeoutMs: number;
  readonly maxHeaderBytes: number;
  readonly maxConnections: number;
  /** An idle kept-alive connection is closed after this; longer than common proxies keep theirs. Milliseconds. */
  readonly keepAliveMs: number;
};

/** Defaults of what has no variable. */
export const defaultLimits = { maxHeaderBytes: 16_384, maxConnections: 10_000, keepAliveMs: 65_000 } as const;

/** A node:http server around one handler. What the parser itself refuses is answered with a problem and a closed connection. */
export function createHttpServer(handle: Handle, limits: ServerLimits): Server {
  const server = createServer({
    maxHeaderSize: limits.maxHeaderBytes,
    headersTimeout: limits.requestTimeoutMs,
    // The body has a timer of its own that can answer with a trace id; this one is the backstop behind it.
    requestTimeout: limits.requestTimeoutMs + 2_000,
    // Node looks at both time-outs only this often. Milliseconds.
    connectionsCheckingInterval: Math.min(1_000, limits.requestTimeoutMs),
    keepAliveTimeout: limits.keepAliveMs,
    // Asked for below, with an answer that says what is wrong.
    requireHostHeader: false,
    insecureHTTPParser: false,
  });
  // Above a count Node drops header lines silently, and a second Idempotency-Key with them. The size limit still holds.
  server.maxHeadersCount = 0;
  server.maxConnections = limits.maxConnections;
  const take = (req: IncomingMessage, res: ServerResponse, expectsContinue: boolean) => {
    if (hasOneHost(req)) void handle(req, res, expectsContinue);
    else refuseRequest(res, 'bad_request', { Connection: 'close' });
  };
  server.on('request', (req, res) => take(req, res, false));
  server.on('checkContinue', (req, res) => take(req, res, true));
  server.on('checkExpectation', (_req, res: ServerResponse) => refuseRequest(res, 'expectation_failed'));
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => refuse(error, socket));
  // CONNECT and Upgrade are never taken.
  server.on('connect', (_req, socket: Socket) => write(socket, 'method_not_allowed'));
  return server;
}

/** RFC 9112 §3.2: exactly one, which only HTTP/1.0 may leave out. */
function hasOneHost(req: IncomingMessage): boolean {
  const count = req.headersDistinct.host?.length ?? 0;
  return count === 1 || (count === 0 && req.httpVersion === '1.0');
}

/** Refuses a request before anybody sees it. */
function refuseRequest(res: ServerResponse, code: ErrorCode, headers: Readonly<Record<string, string>> = {}): void {
  const reply = problemReply(problem(code), undefined, false);
  sendReply(res, { ...reply, headers: { ...reply.headers, ...headers } }, false);
}

const codeOfParserError: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
};

function refuse(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  write(socket, codeOfParserError[error.code ?? ''] ?? 'bad_request');
}

function write(socket: Socket, code: ErrorCode): void {
  const { status, headers, body } = problemReply(problem(code), undefined, false);
  const lines = Object.entries({ ...headers, 'Content-Length': body?.byteLength ?? 0, Connection: 'close' });
  const head = [`HTTP/1.1 ${status} `, ...lines.map(([name, value]) => `${name}: ${value}`), '', ''].join('\r\n');
  socket.end(Buffer.concat([Buffer.from(head), body ?? Buffer.alloc(0)]));
  // A peer that never reads must not keep the socket.
  setTimeout(() => socket.destroy(), 1_000).unref();
}
