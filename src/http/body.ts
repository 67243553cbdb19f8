import type { IncomingMessage } from 'node:http';
import { problem } from '../protocol/errors.ts';

/** The client went away before its request was whole: nobody is there to answer. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';
}

/** True when the request announces a body (RFC 9112 §6.3); an announced length of zero is none. */
export function announcesBody(req: IncomingMessage): boolean {
  const length = req.headersDistinct['content-length']?.[0];
  return req.headersDistinct['transfer-encoding'] !== undefined || (length !== undefined && Number(length) > 0);
}

/** The length that the head announces, or undefined (chunked). */
export function announcedLength(req: IncomingMessage): number | undefined {
  const length = req.headersDistinct['content-length']?.[0];
  return length === undefined ? undefined : Number(length);
}

/**
 * Reads the whole body. Throws 413 `body_too_large` at the first byte too many, 408 `request_timeout` when it is not whole
 * `timeoutMs` from now, ClientGone when the connection closes before.
 */
export function readBody(req: IncomingMessage, maxBytes: number, timeoutMs: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const settle = (end: () => void) => {
      clearTimeout(timer);
      req.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose);
      end();
    };
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBytes) settle(() => reject(problem('body_too_large')));
      else chunks.push(chunk);
    };
    const onEnd = () => settle(() => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
    const onClose = () => settle(() => reject(new ClientGone()));
    const timer = setTimeout(() => settle(() => reject(problem('request_timeout'))), timeoutMs);
    req.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose);
    // Gone while something else was awaited: the events above have been and will not come again.
    if (req.destroyed) onClose();
  });
}
