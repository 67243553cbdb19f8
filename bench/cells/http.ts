import type { Arm, Cell, Check, Prepared } from '../cell.ts';
import { calibrate, fire, type Shot, type Volley } from '../stage/fire.ts';
import type { Stage } from '../stage/stage.ts';
import { rateEstimateMs, rateRounds, roundMs, warmUpMs } from './sizes.ts';

const armNames = ['bare', 'pipeline', 'authenticated'] as const;
const connections = 32;

/** The plainest route of the pipeline, and one that needs a token, against a bare `node:http` handler. */
export const http: Cell = {
  name: 'http',
  title: 'what the pipeline costs: its plainest route and one with a token, against a bare node:http handler',
  isUsual: true,
  takes: [],
  variants({ size, rounds = rateRounds[size] }) {
    return [
      {
        cell: 'http',
        settings: { connections },
        rounds,
        estimateMs: rateEstimateMs(size, armNames.length, rounds),
        prepare: (stage) => prepare(stage, warmUpMs[size], roundMs[size]),
      },
    ];
  },
};

async function prepare(stage: Stage, warmMs: number, forMs: number): Promise<Prepared> {
  const { server, headers, signal } = stage;
  const targets: Readonly<Record<(typeof armNames)[number], { url: string; shot: Shot }>> = {
    bare: { url: server.bareUrl, shot: { method: 'GET', path: '/healthz' } },
    pipeline: { url: server.url, shot: { method: 'GET', path: '/healthz' } },
    authenticated: { url: server.url, shot: { method: 'GET', path: '/bench/ping' } },
  };
  const checks: Check[] = [];
  const arms = armNames.map((name): Arm => {
    // The token is sent to the bare handler too: the same bytes arrive.
    const volley: Omit<Volley, 'amount'> = { ...targets[name], connections, headers, expect: 200, signal };
    let amount = 0;
    return {
      name,
      async warmUp() {
        amount = await calibrate(volley, warmMs, forMs);
      },
      async run() {
        const fired = await fire({ ...volley, amount });
        checks.push({
          name: 'answers with the expected status',
          arm: name,
          expected: amount,
          actual: fired.statuses[200] ?? 0,
        });
        return fired;
      },
    };
  });
  return { arms, check: async () => checks };
}
