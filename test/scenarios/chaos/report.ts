import type { Violation } from './check/record.ts';
import { troubles } from './faults.ts';
import { type History, isSuccess, type NetworkFault } from './history.ts';
import type { RunResult } from './run.ts';

/** A run in figures. */
export type Figures = {
  readonly seed: number;
  readonly minutes: number;
  readonly intents: { readonly [kind: string]: number };
  readonly requests: number;
  /** Copies beyond the first, and tries beyond a copy's first. */
  readonly repeated: number;
  readonly successes: number;
  readonly replays: number;
  readonly takenOver: number;
  readonly fencedOff: number;
  readonly slowestMs: number;
  readonly faults: { readonly [kind: string]: number };
  readonly violations: number;
};

/** What the network may do to a request, and how it is told. */
export const networkKinds: { readonly [kind in Exclude<NetworkFault, 'none'>]: string } = {
  refuse: 'a connection is reset before the request gets through',
  drop_answer: 'the request gets through and its answer is lost',
  cut_answer: 'an answer is cut in the middle of its body',
  hang: 'an answer never comes and the connection stays open',
  delay: 'a request is held back',
  duplicate: 'a request arrives twice at the same moment',
};

/** All kinds of fault with a sentence on each. */
export const faultKinds: Readonly<Record<string, string>> = {
  ...Object.fromEntries(troubles.map(({ kind, what }) => [kind, what])),
  ...networkKinds,
};

/** Counts a run. */
export function figuresOf(result: RunResult, seed: number, minutes: number): Figures {
  const { history } = result;
  const { tries } = history;
  const count = (names: readonly string[]) => {
    const counts: Record<string, number> = {};
    for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
    return counts;
  };
  const hit = tries.filter((entry) => entry.network !== 'none').map((entry) => entry.network);
  const faults = count([...history.faults.map((fault) => fault.kind), ...hit]);
  return {
    seed,
    minutes,
    intents: count(history.intents.map((intent) => intent.kind)),
    requests: tries.length,
    repeated: tries.length - new Set(tries.map((entry) => entry.intent)).size,
    successes: tries.filter((entry) => isSuccess(entry.end)).length,
    replays: tries.filter((entry) => entry.end.kind === 'answered' && entry.end.replayed === 'true').length,
    takenOver: result.takenOver,
    fencedOff: result.fencedOff,
    slowestMs: Math.round(Math.max(0, ...answeredMs(history))),
    faults: Object.fromEntries(Object.keys(faultKinds).map((kind) => [kind, faults[kind] ?? 0])),
    violations: result.violations.length,
  };
}

function answeredMs({ tries }: History): number[] {
  return tries.flatMap((entry) => (entry.end.kind === 'answered' ? [entry.toMs - entry.fromMs] : []));
}

/** The figures as lines for a person. */
export function summaryOf(figures: Figures): string {
  const { intents, faults } = figures;
  const list = (counts: Readonly<Record<string, number>>) =>
    Object.entries(counts)
      .map(([name, n]) => `  ${String(n).padStart(6)} ${name}\n`)
      .join('');
  const total = Object.values(intents).reduce((sum, n) => sum + n, 0);
  return `seed ${figures.seed}, ${figures.minutes} minutes
${total} intents
${list(intents)}${figures.requests} requests, ${figures.repeated} of them repeated; ${figures.successes} successes, ${figures.replays} of them replays
${figures.takenOver} keys taken over, ${figures.fencedOff} late owners fenced off; slowest answer ${figures.slowestMs} ms
faults
${list(faults)}${figures.violations} violations
`;
}

/** The whole history of what a violation is about. */
export function storyOf(violation: Violation, { history, snapshot }: RunResult): string {
  const lines = [`✗ ${violation.rule}: ${violation.says}`];
  const intent = violation.intent === undefined ? undefined : history.intents[violation.intent];
  if (intent === undefined) return `${lines.join('\n')}\n`;
  lines.push(`  intent ${JSON.stringify(intent)}`);
  const tries = history.tries.filter((entry) => entry.intent === intent.id);
  const [from, to] = [Math.min(...tries.map((e) => e.fromMs)), Math.max(...tries.map((e) => e.toMs))];
  const events = [
    ...tries.map((entry) => {
      const { end, copy, server, network, calm } = entry;
      const what =
        end.kind === 'answered'
          ? `${end.status} ${end.code ?? ''} replayed=${end.replayed ?? '-'} ${end.headers} ${end.body.slice(0, 300)}`
          : `no answer: ${end.reason}`;
      const where = `copy ${copy} to ${server}${network === 'none' ? '' : ` (${network})`}${calm ? ' in the calm' : ''}`;
      return { atMs: entry.fromMs, says: `${span(entry)} ${where}: ${what}` };
    }),
    ...history.faults
      .filter((fault) => fault.fromMs < to && fault.toMs > from)
      .map((fault) => ({ atMs: fault.fromMs, says: `${span(fault)} fault ${fault.kind} on ${fault.what}` })),
  ].sort((a, b) => a.atMs - b.atMs);
  lines.push(...events.map(({ says }) => `  ${says}`));
  const key = snapshot.keys.find((row) => row.tenant === intent.tenant && row.key === intent.key);
  if (key !== undefined) lines.push(`  key ${JSON.stringify({ ...key, body: key.body?.slice(0, 300) })}`);
  return `${lines.join('\n')}\n`;
}

function span({ fromMs, toMs }: { fromMs: number; toMs: number }): string {
  return `${(fromMs / 1_000).toFixed(3)}–${(toMs / 1_000).toFixed(3)} s`;
}
