import type { Fault, History, Try } from '../history.ts';
import { boundMsOf } from '../timing.ts';
import type { Violation } from './record.ts';

/** No try takes longer than it may, but for the time that its server or the database stood still. */
export function checkBounds(history: History): Violation[] {
  const kinds = new Map(history.intents.map((intent) => [intent.id, intent.kind]));
  return history.tries.flatMap((entry) => {
    // The network's own silence.
    if (entry.network === 'hang') return [];
    const ms = entry.toMs - entry.fromMs;
    const boundMs = boundMsOf(kinds.get(entry.intent) ?? 'order');
    if (ms < boundMs) return [];
    const excuseMs = history.faults.reduce((sum, fault) => sum + sharedMs(fault, entry), 0);
    if (ms < boundMs + excuseMs && excuseMs > 0) return [];
    const says = `a try took ${Math.round(ms)} ms of ${boundMs}, with ${Math.round(excuseMs)} ms of faults`;
    return [{ rule: 'no answer beyond its bound', says, intent: entry.intent }];
  });
}

function sharedMs(fault: Fault, entry: Try): number {
  if (fault.what !== entry.server && fault.what !== 'database') return 0;
  return Math.max(0, Math.min(fault.toMs, entry.toMs) - Math.max(fault.fromMs, entry.fromMs));
}
