import type { Check, Metrics, Settings } from '../cell.ts';
import type { Environment } from '../environment.ts';
import type { RawLine, RoundLine } from '../lines.ts';
import { median, spread } from './quantiles.ts';

/** Medians of an arm's rounds with the smallest and the largest of each, and all its answers by status. */
export type ArmSummary = {
  readonly rounds: number;
  readonly median: Metrics;
  readonly spread: Readonly<Record<string, readonly [number, number]>>;
  readonly statuses: Readonly<Record<string, number>>;
  /** A check of it failed: its figures mean nothing. */
  readonly isVoid: boolean;
};

/** How two arms of one round compare, over all rounds. */
export type RatioSummary = {
  readonly median: number;
  readonly spread: readonly [number, number];
  /** What is aimed at, and whether the median reaches it. */
  readonly aim: number | undefined;
  readonly reached: boolean | undefined;
};

/** A check and its outcome. */
export type CheckSummary = Check & { readonly ok: boolean };

/** One comparison. */
export type VariantSummary = {
  readonly cell: string;
  readonly settings: Settings;
  readonly arms: Readonly<Record<string, ArmSummary>>;
  readonly ratios: Readonly<Record<string, RatioSummary>>;
  readonly checks: readonly CheckSummary[];
  /** Why it did not come to its end. */
  readonly fault: string | undefined;
  readonly ok: boolean;
};

/** Everything that a report is made from. */
export type Summary = {
  readonly environment: Environment | undefined;
  readonly ok: boolean;
  /** In the order in which they were measured. */
  readonly variants: readonly VariantSummary[];
};

/** A ratio to be made: `of` by `to`, round by round, so that what slows both down slows down neither. */
export type RatioDefinition = {
  readonly name: string;
  readonly cell: string;
  readonly of: string;
  readonly to: string;
  readonly metric: string;
  /** The least that is aimed at. */
  readonly aim?: number;
};

/** Counters of a round that mean more by request. `_ms` becomes `_us_per_request`. */
const perRequest = ['node_cpu_ms', 'client_cpu_ms', 'postgres_cpu_ms', 'db_ms', 'wal_bytes', 'statements', 'buffers'];

/** Makes statistics of raw lines. */
export function summarise(lines: readonly RawLine[], ratios: readonly RatioDefinition[]): Summary {
  const groups = new Map<string, RawLine[]>();
  for (const line of lines) {
    const name = JSON.stringify([line.cell, line.settings]);
    groups.set(name, [...(groups.get(name) ?? []), line]);
  }
  const variants = [...groups.values()].map((group) => summariseVariant(group, ratios));
  return {
    environment: lines[0]?.environment,
    ok: lines.length > 0 && variants.every((variant) => variant.ok),
    variants,
  };
}

function summariseVariant(lines: readonly RawLine[], definitions: readonly RatioDefinition[]): VariantSummary {
  const { cell, settings } = lines[0] as RawLine;
  const rounds = lines.filter((line) => line.type === 'round');
  const checks = lines.flatMap((line): CheckSummary[] =>
    line.type === 'check'
      ? [
          {
            name: line.name,
            ...(line.arm === undefined ? {} : { arm: line.arm }),
            expected: line.expected,
            actual: line.actual,
            ok: line.ok,
          },
        ]
      : [],
  );
  const fault = lines.find((line) => line.type === 'fault')?.message;
  const failed = checks.filter((check) => !check.ok);
  const isVoid = (arm: string) =>
    fault !== undefined || failed.some((check) => check.arm === undefined || check.arm === arm);
  const names = [...new Set(rounds.map((round) => round.arm))].sort(
    (a, b) => firstOrder(rounds, a) - firstOrder(rounds, b),
  );
  const arms = Object.fromEntries(
    names.map((name) => [
      name,
      summariseArm(
        rounds.filter((round) => round.arm === name),
        isVoid(name),
      ),
    ]),
  );
  const ratios = Object.fromEntries(
    definitions.flatMap((definition) => {
      if (definition.cell !== cell || isVoid(definition.of) || isVoid(definition.to)) return [];
      const ratio = summariseRatio(rounds, definition);
      return ratio === undefined ? [] : [[definition.name, ratio]];
    }),
  );
  return { cell, settings, arms, ratios, checks, fault, ok: failed.length === 0 && fault === undefined };
}

/** An arm's place in the first round it took part in. */
function firstOrder(rounds: readonly RoundLine[], arm: string): number {
  return rounds.find((round) => round.arm === arm)?.order ?? 0;
}

function summariseArm(rounds: readonly RoundLine[], isVoid: boolean): ArmSummary {
  const metrics = rounds.map((round) => withPerRequest(round.metrics));
  const names = [...new Set(metrics.flatMap((of) => Object.keys(of)))];
  const valuesOf = (name: string) => metrics.flatMap((of) => of[name] ?? []).filter(Number.isFinite);
  const known = names.filter((name) => valuesOf(name).length > 0);
  const statuses: Record<string, number> = {};
  for (const round of rounds) {
    for (const [status, times] of Object.entries(round.statuses)) statuses[status] = (statuses[status] ?? 0) + times;
  }
  return {
    rounds: rounds.length,
    median: Object.fromEntries(known.map((name) => [name, median(valuesOf(name))])),
    spread: Object.fromEntries(known.map((name) => [name, spread(valuesOf(name))])),
    statuses,
    isVoid,
  };
}

/** The figures of a round with its counters by request. */
export function withPerRequest(metrics: Metrics): Metrics {
  const { requests } = metrics;
  if (requests === undefined || requests === 0) return metrics;
  const added: Record<string, number> = {};
  for (const name of perRequest) {
    const value = metrics[name];
    if (value === undefined) continue;
    if (name.endsWith('_ms')) added[`${name.slice(0, -3)}_us_per_request`] = (value * 1_000) / requests;
    else added[`${name}_per_request`] = value / requests;
  }
  return { ...metrics, ...added };
}

function summariseRatio(rounds: readonly RoundLine[], definition: RatioDefinition): RatioSummary | undefined {
  const { of, to, metric, aim } = definition;
  const valueIn = (arm: string, round: number) =>
    rounds.find((line) => line.arm === arm && line.round === round)?.metrics[metric];
  const values = [...new Set(rounds.map((line) => line.round))]
    .map((round) => (valueIn(of, round) ?? Number.NaN) / (valueIn(to, round) ?? Number.NaN))
    .filter(Number.isFinite);
  if (values.length === 0) return undefined;
  const middle = median(values);
  return { median: middle, spread: spread(values), aim, reached: aim === undefined ? undefined : middle >= aim };
}
