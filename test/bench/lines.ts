import type { Environment } from '../../bench/environment.ts';
import type { CheckLine, FaultLine, RoundLine } from '../../bench/lines.ts';

/** Where the made-up figures come from. */
export const environment: Environment = {
  commit: 'abc1234',
  date: '2026-01-01',
  node: '20.0.0',
  postgres: '18.0',
  database: 'embedded',
  cpu: 'a CPU',
  cores: 2,
  memory_gb: 4,
  platform: 'linux x64',
  fsync: 'on',
  synchronous_commit: 'on',
  shared_buffers: '128MB',
};

const common = { at: '2026-01-01T00:00:00.000Z', cell: 'keys', settings: {}, environment };

/** A round, of which a test says what matters to it. */
export function roundLine(of: Partial<RoundLine>): RoundLine {
  return {
    type: 'round',
    ...common,
    arm: 'plain',
    round: 1,
    order: 1,
    metrics: { goodput_per_s: 1 },
    statuses: { 201: 1 },
    ...of,
  };
}

/** A check. */
export function checkLine(of: Partial<CheckLine> & { ok: boolean }): CheckLine {
  return { type: 'check', ...common, name: 'a check', expected: 1, actual: of.ok ? 1 : 2, ...of };
}

/** A comparison that broke off. */
export function faultLine(message: string): FaultLine {
  return { type: 'fault', ...common, message };
}
