import {
  type AttemptReport,
  type Client,
  type ClientOptions,
  type Clock,
  createClient,
} from '../../src/client/index.ts';

/** One scripted end of a try: an answer, a connection that breaks, or silence until it is aborted. */
export type Scripted = { status: number; headers?: Record<string, string>; body?: unknown } | 'broken' | 'silent';

/** A request as the client sent it. */
export type Sent = { method: string; url: string; headers: Record<string, string>; body: string | undefined };

/** A client over a scripted network and a clock that only sleeping moves. */
export type ScriptedClient = {
  readonly client: Client;
  readonly sent: Sent[];
  readonly slept: number[];
  readonly reports: AttemptReport[];
  /** Ends of the next tries. */
  play(...ends: Scripted[]): void;
  /** Moves the clock. */
  pass(ms: number): void;
};

/** The scripted clock's beginning: Sun, 06 Nov 1994 08:49:37 GMT. */
export const startMs = 784_111_777_000;

/** A client whose jitter is always half of what it may be. */
export function scriptedClient(options: Partial<ClientOptions> = {}): ScriptedClient {
  const ends: Scripted[] = [];
  const sent: Sent[] = [];
  const slept: number[] = [];
  const reports: AttemptReport[] = [];
  let nowMs = startMs;
  const clock: Clock = {
    wallMs: () => nowMs,
    steadyMs: () => nowMs,
    async sleep(ms) {
      slept.push(ms);
      nowMs += ms;
    },
  };
  const client = createClient({
    baseUrl: 'http://server.test/api/',
    token: 'token-1',
    random: () => 0.5,
    clock,
    onAttempt: (report) => reports.push(report),
    fetch: async (input, init) => {
      const body = init?.body == null ? undefined : new TextDecoder().decode(init.body as Uint8Array);
      const headers = Object.fromEntries(new Headers(init?.headers).entries());
      sent.push({ method: init?.method ?? 'GET', url: String(input), headers, body });
      const end = ends.shift();
      if (end === undefined) throw new Error('the script has no more ends');
      if (end === 'broken') throw new TypeError('fetch failed');
      if (end === 'silent') return await silence(init?.signal ?? undefined);
      return response(end);
    },
    ...options,
  });
  return {
    client,
    sent,
    slept,
    reports,
    play: (...more) => void ends.push(...more),
    pass(ms) {
      nowMs += ms;
    },
  };
}

function response({ status, headers = {}, body }: Exclude<Scripted, string>): Response {
  const text = body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body);
  const type = status < 400 ? 'application/json' : 'application/problem+json';
  return new Response(text, {
    status,
    headers: { ...(body === undefined ? {} : { 'content-type': type }), ...headers },
  });
}

function silence(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal?.aborted) reject(signal.reason);
    signal?.addEventListener('abort', () => reject(signal.reason));
  });
}

/** An error answer of a server of ours. */
export function problemAnswer(
  status: number,
  code: string,
  more: { headers?: Record<string, string>; members?: object } = {},
) {
  const body = {
    type: `/docs/errors#${code}`,
    status,
    code,
    message: `Says ${code}.`,
    trace_id: 'trace',
    ...more.members,
  };
  return { status, headers: { 'x-trace-id': 'trace', ...more.headers }, body };
}

/** The 201 of an order. */
export function orderAnswer(headers: Record<string, string> = {}) {
  const body = { order_id: 'ord_1', cents: 5, item: 'tea', created_at: '2026-01-01T00:00:00.000Z' };
  return { status: 201, headers: { 'idempotent-replayed': 'false', ...headers }, body };
}
