import type { ServerResponse } from 'node:http';

/** One answer as bytes, before it meets a socket. */
export type Reply = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Null: an answer without a body. */
  readonly body: Uint8Array | null;
};

/** Statuses that never have a body (RFC 9110 §15.3.5, §15.4.5). */
export function isBodiless(status: number): boolean {
  return status === 204 || status === 304;
}

/** Writes a reply. To a HEAD it has the headers of the GET and no body; a 304 has neither type nor length. */
export function sendReply(res: ServerResponse, reply: Reply, isHead = false): void {
  if (res.headersSent || res.destroyed) return;
  const headers: Record<string, string | number> = { ...reply.headers };
  const body = isBodiless(reply.status) ? null : reply.body;
  if (isBodiless(reply.status)) delete headers['Content-Type'];
  else headers['Content-Length'] = body?.byteLength ?? 0;
  res.writeHead(reply.status, headers);
  if (body === null || isHead) res.end();
  else res.end(body);
}
