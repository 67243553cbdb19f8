import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseDirectives } from '../../src/llm/directives.ts';
import { sendError } from './answer.ts';
import { createCompletions } from './completions.ts';
import { createStats, type StubStats } from './stats.ts';

const MAX_BODY_BYTES = 16_777_216;

/** How a stub behaves; everything may be left out. */
export type StubOptions = {
  readonly host?: string;
  /** 0 takes a free one. */
  readonly port?: number;
  /** From the call to the last token. */
  readonly latencyMs?: number;
  readonly tokens?: number;
  /** Directives for every call whose prompt does not say otherwise, such as `[[first:300]]`. */
  readonly directives?: string;
  /** 0 to 1: so many of the calls meet a fault, drawn from the seed. */
  readonly failRate?: number;
  readonly seed?: number;
  /** Honours Idempotency-Key: an answered call is replayed and costs no tokens, a running one is answered with 409. */
  readonly dedupe?: boolean;
  /** Every other one is refused with 401. */
  readonly apiKey?: string | undefined;
  /** Told once for each call, when it ends. */
  readonly onEnd?: (line: string) => void;
};

/** A running stub. */
export type LlmStub = {
  /** For `LLM_BASE_URL`. */
  readonly url: string;
  stats(): StubStats;
  /** Counts, keys and script as at the start. */
  reset(): void;
  /** Directives for the next calls, one each, in order: `['fail:429:1', 'cut:10', 'ok']`. They win over the prompt's. */
  script(next: readonly string[]): void;
  /** Resolves with the counts as soon as they are so. */
  until(condition: (stats: StubStats) => boolean): Promise<StubStats>;
  /** Closes every connection, then the port. */
  close(): Promise<void>;
};

/** Starts a server that speaks OpenAI's chat completions and keeps count. Rejects when the port cannot be had. */
export async function startLlmStub(options: StubOptions = {}): Promise<LlmStub> {
  const { host = '127.0.0.1', port = 0, apiKey } = options;
  const waiting = new Set<() => void>();
  const stats = createStats(() => {
    for (const check of waiting) check();
  });
  const completions = createCompletions(
    {
      latencyMs: options.latencyMs ?? 200,
      tokens: options.tokens ?? 32,
      directives: options.directives ?? '',
      failRate: options.failRate ?? 0,
      seed: options.seed ?? 1,
      dedupe: options.dedupe ?? false,
      onEnd: options.onEnd ?? (() => {}),
    },
    stats,
  );

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '/').split('?')[0]!.replace(/^\/v1(?=\/)/, '');
    const route = `${request.method} ${path}`;
    switch (route) {
      case 'POST /chat/completions':
        if (apiKey !== undefined && request.headers.authorization !== `Bearer ${apiKey}`) {
          return sendError(response, 401, 'Incorrect API key provided.');
        }
        return await completions.handle(request, response, await readBody(request));
      case 'GET /models':
        return sendJson(response, {
          object: 'list',
          data: [{ id: 'stub', object: 'model', created: 0, owned_by: 'stub' }],
        });
      case 'GET /stats':
        return sendJson(response, stats.read());
      case 'POST /reset':
        stub.reset();
        return sendJson(response, stats.read());
      case 'POST /script':
        try {
          stub.script(JSON.parse(await readBody(request)));
        } catch {
          return sendError(response, 400, 'Send a JSON array of directives, such as ["fail:429:1", "cut:10", "ok"].');
        }
        return sendJson(response, {});
      default:
        return sendError(response, 404, `No such route: ${route}.`);
    }
  }

  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => {
      if (response.headersSent || response.destroyed) response.destroy();
      else sendError(response, error instanceof RangeError ? 413 : 500, String(error));
    });
  });
  const stub: Omit<LlmStub, 'url'> = {
    stats: stats.read,
    reset() {
      stats.reset();
      completions.reset();
    },
    script: (next) => completions.script(next.map(readDirective)),
    until: (condition) =>
      new Promise((resolve) => {
        const check = () => {
          const counts = stats.read();
          if (!condition(counts)) return;
          waiting.delete(check);
          resolve(counts);
        };
        waiting.add(check);
        check();
      }),
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
  server.listen(port, host);
  await once(server, 'listening');
  const { port: taken } = server.address() as AddressInfo;
  return { ...stub, url: `http://${host.includes(':') ? `[${host}]` : host}:${taken}/v1` };
}

/** `cut:10` or `[[cut:10]]` as a directive. Throws a TypeError for what is none. */
export function readDirective(text: string): string {
  const directive = text.startsWith('[[') ? text : `[[${text}]]`;
  if (parseDirectives(directive).rest !== '') throw new TypeError(`Not a directive: ${text}`);
  return directive;
}

function sendJson(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { 'Content-Type': 'application/json' });
  response.end(JSON.stringify(body));
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) throw new RangeError('The body is too large.');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
