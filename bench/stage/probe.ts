import { Agent, get } from 'node:http';
import type { Metrics } from '../cell.ts';
import { latencyMetrics } from '../statistics/quantiles.ts';

/** A probe that runs until it is stopped. */
export type Probe = { stop(): Promise<Metrics> };

/**
 * Sends a GET every `everyMs`, whether or not those before it have been answered: a server that stalls delays the answers,
 * not the questions, so the stall is seen in full. Throws at the end when an answer was not 200.
 */
export function startProbe(url: string, headers: Readonly<Record<string, string>>, everyMs: number): Probe {
  const agent = new Agent({ keepAlive: true });
  const latenciesMs: number[] = [];
  const failures: unknown[] = [];
  const pending = new Set<Promise<void>>();
  const ask = () => {
    const startedMs = performance.now();
    const asked = new Promise<number | undefined>((resolve, reject) => {
      get(url, { agent, headers: { ...headers } }, (res) => {
        res.resume().on('end', () => resolve(res.statusCode));
      }).on('error', reject);
    }).then(
      (status) => {
        latenciesMs.push(performance.now() - startedMs);
        if (status !== 200) failures.push(new Error(`the probe was answered with ${status}`));
      },
      (error: unknown) => void failures.push(error),
    );
    pending.add(asked);
    void asked.then(() => pending.delete(asked));
  };
  ask();
  const timer = setInterval(ask, everyMs);
  return {
    async stop() {
      clearInterval(timer);
      await Promise.all(pending);
      agent.destroy();
      if (failures.length > 0) throw failures[0];
      return { 'probe.requests': latenciesMs.length, ...latencyMetrics(latenciesMs, 'probe.') };
    },
  };
}
