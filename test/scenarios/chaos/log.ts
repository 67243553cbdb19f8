import type { Fault, History, Intent, Seen, Try } from './history.ts';

/** The log of a run while it is written. */
export type Log = History & {
  readonly intents: Intent[];
  readonly tries: Try[];
  readonly seen: Seen[];
  readonly faults: Fault[];
  readonly crashes: string[];
  triesOf(intent: number): readonly Try[];
  record(entry: Try): void;
  onSeen(tenant: string, doc: { id: string; version: number; body: string }): void;
};

/** An empty log. */
export function createLog(): Log {
  const byIntent = new Map<number, Try[]>();
  const known = new Set<string>();
  const log: Log = {
    intents: [],
    tries: [],
    seen: [],
    faults: [],
    crashes: [],
    triesOf: (intent) => byIntent.get(intent) ?? [],
    record(entry) {
      log.tries.push(entry);
      const own = byIntent.get(entry.intent);
      if (own === undefined) byIntent.set(entry.intent, [entry]);
      else own.push(entry);
    },
    onSeen(tenant, { id, version, body }) {
      // The same again says nothing new.
      const name = `${tenant} ${id} ${version} ${body}`;
      if (known.has(name)) return;
      known.add(name);
      log.seen.push({ tenant, docId: id, version, body });
    },
  };
  return log;
}
