import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { TestContext } from 'node:test';
import { formatEvent } from '../../src/protocol/event-stream.ts';
import { atEnd } from '../helpers/cleanup.ts';

/** What the server does with one connection. */
export type Part = (res: ServerResponse, req: IncomingMessage) => unknown;

/** A server that plays its parts one connection after another; behind the last it answers 204. */
export type EventServer = {
  readonly url: string;
  /** `Last-Event-ID` of each connection; undefined where there was none. */
  readonly resumedFrom: (string | undefined)[];
};

/** Starts an event server; it is gone after the test. */
export async function startEventServer(t: TestContext, ...parts: Part[]): Promise<EventServer> {
  const resumedFrom: (string | undefined)[] = [];
  const server = createServer((req, res) => {
    resumedFrom.push(req.headers['last-event-id'] as string | undefined);
    const part = parts[resumedFrom.length - 1];
    if (part === undefined) res.writeHead(204).end();
    else part(res, req);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(t, async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as { port: number }).port}`, resumedFrom };
}

/** An event of a job as the server writes it. */
export function jobEvent(seq: number, event: string, members: object = {}): string {
  return formatEvent({ id: String(seq), event, data: JSON.stringify({ seq, ...members }) });
}

/** A delta. */
export function delta(seq: number, text: string): string {
  return jobEvent(seq, 'delta', { text });
}

/** A part that begins a stream and writes these blocks; `end` says how it ends, default: it stays open. */
export function stream(blocks: readonly string[], end: 'open' | 'closed' | 'broken' = 'open'): Part {
  return (res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.write(`retry: 1\n\n${blocks.join('')}`, () => {
      if (end === 'closed') res.end();
      if (end === 'broken') res.destroy();
    });
  };
}

/** A part that answers with a problem. */
export function refuse(status: number, code: string, headers: Record<string, string> = {}): Part {
  return (res) => {
    res.writeHead(status, { 'content-type': 'application/problem+json', ...headers });
    res.end(JSON.stringify({ status, code, message: `Says ${code}.` }));
  };
}
