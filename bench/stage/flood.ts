import { Agent, request } from 'node:http';
import type { Measured } from '../cell.ts';
import { latencyMetrics } from '../statistics/quantiles.ts';
import type { Shot } from './fire.ts';

/** Requests that come at a rate, however long the answers take. */
export type Flood = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly perSecond: number;
  readonly forMs: number;
  readonly shot: () => Shot;
  /** The status that counts as goodput. */
  readonly expect: number;
  /** A client gives up after this. Milliseconds. */
  readonly patienceMs: number;
  readonly signal: AbortSignal;
};

/** Milliseconds between two handfuls of requests. */
const tickMs = 5;

/** Sends a flood and waits until every client has its answer or has given up (`timeout`) or lost its connection (`error`). */
export async function flood(options: Flood): Promise<Measured> {
  const { url, headers, perSecond, forMs, shot, expect, patienceMs, signal } = options;
  const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY, maxFreeSockets: 5_000 });
  const { hostname, port } = new URL(url);
  const statuses: Record<string, number> = {};
  const latenciesMs: number[] = [];
  const pending = new Set<Promise<void>>();
  const startedMs = performance.now();
  let lastGoodMs = startedMs;

  const send = () => {
    const { method, path, headers: own, body } = shot();
    const sentMs = performance.now();
    const outcome = new Promise<string>((resolve) => {
      const type = body === undefined ? {} : { 'Content-Type': 'application/json' };
      const req = request({ hostname, port, agent, method, path, headers: { ...headers, ...type, ...own } }, (res) => {
        res.resume();
        res.on('end', () => resolve(String(res.statusCode)));
        res.on('error', () => resolve('error'));
      });
      req.setTimeout(patienceMs, () => {
        resolve('timeout');
        req.destroy();
      });
      req.on('error', () => resolve('error'));
      req.end(body);
    }).then((status) => {
      statuses[status] = (statuses[status] ?? 0) + 1;
      if (status !== String(expect)) return;
      lastGoodMs = performance.now();
      latenciesMs.push(lastGoodMs - sentMs);
    });
    pending.add(outcome);
    void outcome.then(() => pending.delete(outcome));
  };

  let sent = 0;
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      const passedMs = performance.now() - startedMs;
      const due = Math.floor((Math.min(passedMs, forMs) / 1_000) * perSecond);
      for (; sent < due; sent += 1) send();
      if (passedMs < forMs && !signal.aborted) return;
      clearInterval(timer);
      resolve();
    }, tickMs);
  });
  await Promise.all(pending);
  agent.destroy();
  signal.throwIfAborted();
  const wallMs = Math.max(forMs, lastGoodMs - startedMs);
  return {
    statuses,
    metrics: {
      wall_ms: wallMs,
      requests: sent,
      offered_per_s: (sent / forMs) * 1_000,
      goodput_per_s: (latenciesMs.length / wallMs) * 1_000,
      ...latencyMetrics(latenciesMs),
    },
  };
}
