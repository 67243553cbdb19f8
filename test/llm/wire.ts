import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { createOpenAiProvider } from '../../src/llm/openai.ts';
import type { Provider } from '../../src/llm/provider.ts';
import { atEnd } from '../helpers/cleanup.ts';

type Request = {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
};

/** A provider whose other side is written by the test, byte by byte. `allClosed` resolves when each of its connections is closed. */
export async function providerAt(
  t: TestContext,
  respond: (response: ServerResponse) => unknown,
  options: { readonly apiKey?: string; readonly now?: () => number; readonly path?: string } = {},
): Promise<{ provider: Provider; allClosed(): Promise<unknown>; requests: Request[] }> {
  const requests: Request[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (part) => {
      body += part;
    });
    request.once('end', () => {
      requests.push({ method: request.method, url: request.url, headers: request.headers, body });
      respond(response);
    });
  });
  const closings: Promise<unknown>[] = [];
  server.on('connection', (socket) => closings.push(new Promise((resolve) => socket.once('close', resolve))));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(t, () => {
    server.closeAllConnections();
    server.close();
  });
  const { path = '/v1', ...rest } = options;
  const { port } = server.address() as AddressInfo;
  return {
    provider: createOpenAiProvider({ baseUrl: `http://127.0.0.1:${port}${path}`, model: 'm', ...rest }),
    allClosed: () => Promise.all(closings),
    requests,
  };
}

/** Writes the head of a streamed answer. */
export function stream(response: ServerResponse): ServerResponse {
  return response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
}

/** One chunk with some text, or with the reason of the end. */
export function chunk(content: string | null, finish: string | null = null): string {
  const delta = content === null ? {} : { content };
  return `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
}

/** The chunk that says what the answer cost. */
export function usage(prompt: number, completion: number): string {
  return `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: prompt, completion_tokens: completion } })}\n\n`;
}
