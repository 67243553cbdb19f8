import autocannon from 'autocannon';
import type { Measured } from '../cell.ts';
import { latencyMetrics } from '../statistics/quantiles.ts';

/** One request of a volley. */
export type Shot = {
  readonly method: 'GET' | 'POST' | 'PUT';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
};

/** A volley: `amount` requests over `connections` that each wait for their answer before the next one. */
export type Volley = {
  readonly url: string;
  readonly connections: number;
  readonly amount: number;
  /** Sent with every request. */
  readonly headers: Readonly<Record<string, string>>;
  /** The request, or a function that makes the next one. */
  readonly shot: Shot | (() => Shot);
  /** The status that counts as goodput; all others are attempts. */
  readonly expect: number;
  readonly signal: AbortSignal;
};

/** What a volley brought. */
export type Fired = Measured & { readonly wallMs: number };

/** Seconds after which an answer counts as an error: no cell has slower ones. */
const timeoutSeconds = 120;

/**
 * Fires a volley with autocannon. Its own totals are not used: they count every status and round to milliseconds. Each
 * answer's time and status are taken as they come, and a fixed amount, not a time, ends it, so that none is cut off.
 * Throws when an answer is missing.
 */
export async function fire(volley: Volley): Promise<Fired> {
  volley.signal.throwIfAborted();
  const { shot, amount } = volley;
  const connections = Math.min(volley.connections, amount);
  const statuses: Record<string, number> = {};
  const latenciesMs: number[] = [];
  let bytes = 0;
  let answered = 0;
  const startedMs = performance.now();
  let endedMs = startedMs;
  const failures: unknown[] = [];
  let stop = () => {};
  await new Promise<void>((resolve, reject) => {
    const instance = autocannon(
      {
        url: volley.url,
        connections,
        amount,
        timeout: timeoutSeconds,
        // How often it looks whether all have answered. Milliseconds.
        sampleInt: 20,
        headers: { ...volley.headers },
        requests: [requestOf(shot)],
      } as autocannon.Options,
      (error: unknown) => (error ? reject(error) : resolve()),
    );
    instance.on('response', (_client, status, responseBytes, ms) => {
      endedMs = performance.now();
      answered += 1;
      bytes += responseBytes;
      statuses[status] = (statuses[status] ?? 0) + 1;
      if (status === volley.expect) latenciesMs.push(ms);
    });
    instance.on('reqError', (error) => {
      failures.push(error);
    });
    stop = () => instance.stop();
    volley.signal.addEventListener('abort', stop);
  });
  volley.signal.removeEventListener('abort', stop);
  volley.signal.throwIfAborted();
  if (failures.length > 0 || answered !== amount) {
    throw new Error(`${amount - answered} of ${amount} requests got no answer: ${String(failures[0] ?? 'no error')}`);
  }
  const wallMs = endedMs - startedMs;
  return {
    wallMs,
    statuses,
    metrics: {
      wall_ms: wallMs,
      requests: amount,
      attempts_per_s: (amount / wallMs) * 1_000,
      goodput_per_s: (latenciesMs.length / wallMs) * 1_000,
      wire_bytes_per_request: bytes / amount,
      ...latencyMetrics(latenciesMs),
    },
  };
}

function requestOf(shot: Volley['shot']): autocannon.Request {
  if (typeof shot !== 'function') return withBody({}, shot);
  return { setupRequest: (request: autocannon.Request) => withBody(request, shot()) } as autocannon.Request;
}

function withBody(request: autocannon.Request, shot: Shot): autocannon.Request {
  const type = shot.body === undefined ? {} : { 'Content-Type': 'application/json' };
  return {
    ...request,
    method: shot.method,
    path: shot.path,
    headers: { ...request.headers, ...type, ...shot.headers },
    ...(shot.body === undefined ? {} : { body: shot.body }),
  };
}

/**
 * Fires until an arm is warm and answers how many requests fill `roundMs`: a first volley compiles the code, a second one is
 * timed. `onFired` is told of both, for the checks that count everything that was sent.
 */
export async function calibrate(
  volley: Omit<Volley, 'amount'>,
  warmUpMs: number,
  roundMs: number,
  onFired: (measured: Measured) => void = () => {},
): Promise<number> {
  let amount = bounded(20, volley.connections);
  for (const forMs of [warmUpMs, roundMs]) {
    const fired = await fire({ ...volley, amount });
    onFired(fired);
    amount = bounded((amount / fired.wallMs) * forMs, volley.connections);
  }
  return amount;
}

/** Requests of a volley at least (a few per connection) and at most (what a machine ten times as fast would do). */
function bounded(amount: number, connections: number): number {
  return Math.round(Math.min(500_000, Math.max(amount, connections * 2)));
}
