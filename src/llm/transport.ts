import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import { cutOff, notReached } from './failures.ts';

type Post = {
  readonly url: URL;
  readonly headers: { readonly [name: string]: string };
  readonly body: string;
  readonly signal: AbortSignal;
  readonly onSent: (() => void) | undefined;
};

/**
 * Posts a body and resolves with the answer's head; its body is read, or destroyed, by the caller.
 * Throws the signal's reason, or a `ModelError`: not reached (nothing was sent), or cut off (outcome unknown).
 *
 * Every call has a connection of its own. On one that is kept alive the server may just be hanging up: the call is lost, and
 * nobody knows whether it was paid. A handshake is cheap beside a model. For the same reason this is `node:http` and not
 * `fetch`: only here it can be told whether a failed call had left.
 */
export function post({ url, headers, body, signal, onSent }: Post): Promise<IncomingMessage> {
  const isSecure = url.protocol === 'https:';
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const bytes = Buffer.from(body);
    const request = (isSecure ? https : http).request(url, {
      method: 'POST',
      headers: { ...headers, 'content-length': bytes.length },
      agent: isSecure ? secureAgent : agent,
      signal,
    });
    let sent = false;
    request.once('socket', (socket) =>
      socket.once(isSecure ? 'secureConnect' : 'connect', () => {
        sent = true;
        onSent?.();
      }),
    );
    request.once('response', resolve);
    const fail = (cause?: unknown) => reject(signal.aborted ? signal.reason : sent ? cutOff(cause) : notReached(cause));
    // Stays for good: after the head, an abort shows here as well as in the body.
    request.on('error', fail);
    // Without an error when the server switches protocols, which nobody asked for.
    request.once('close', () => fail());
    request.end(bytes);
  });
}

/** Reads a body in whatever pieces it comes. Throws the signal's reason, or `cutOff` when the connection closes early. */
export async function* readBytes(response: IncomingMessage, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    yield* response;
  } catch (cause) {
    throw signal.aborted ? signal.reason : cutOff(cause);
  }
}

// keepAlive off; the TLS agent still resumes sessions, which makes the next handshake short.
const agent = new http.Agent({ keepAlive: false });
const secureAgent = new https.Agent({ keepAlive: false });
