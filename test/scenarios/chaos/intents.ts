import type { Intent, IntentKind } from './history.ts';
import { markerOf } from './history.ts';
import type { Random } from './random.ts';
import { poorTenant, richTenants } from './tenants.ts';

/** A document that clients edit together. */
export type SharedDoc = { readonly tenant: string; readonly id: string; edits: number };

/** How often each kind is wanted. */
const shares: readonly (readonly [IntentKind, number])[] = [
  ['order', 30],
  ['edit', 14],
  ['patch', 8],
  ['unkeyed_edit', 8],
  ['rewrite', 9],
  ['job', 15],
  ['new_doc', 6],
  ['remove', 7],
  ['credit', 3],
];

/** Which model troubles a prompt may ask for, by the fault they are counted as. */
export const modelFaults = {
  model_fails: [
    '[[fail:500 times=1]]',
    '[[fail:429:1 times=1]]',
    '[[cut:3 times=1]]',
    '[[error:2 times=1]]',
    '[[refused times=1]]',
    '[[fail:400]]',
  ],
  model_stalls: ['[[stall times=1]]', '[[stall-after:4 times=1]]'],
} as const;
export type ModelFault = keyof typeof modelFaults;

/** What the next client wants. `remove` is preceded by its own `put_new`. */
export function drawKind(random: Random, hasDocs: boolean): IntentKind {
  const total = shares.reduce((sum, [, share]) => sum + share, 0);
  let left = random.next() * total;
  for (const [kind, share] of shares) {
    left -= share;
    if (left <= 0) return needsDoc(kind) && !hasDocs ? 'new_doc' : kind;
  }
  return 'order';
}

/** Whether the kind is about a document that is there. */
export function needsDoc(kind: IntentKind): boolean {
  return kind === 'edit' || kind === 'patch' || kind === 'unkeyed_edit' || kind === 'rewrite';
}

/** Whose intent of this kind is. */
export function drawTenant(random: Random, kind: IntentKind): string {
  if (kind === 'credit') return poorTenant;
  return kind === 'job' && random.chance(0.2) ? poorTenant : random.pick(richTenants);
}

/** What a model is asked for in an intent's name: to repeat what it is given, with whatever trouble. */
export function promptOf(intent: Pick<Intent, 'id'>, trouble: string, slowMs: number): string {
  return `[[echo]][[slow:${slowMs}]]${trouble} ${markerOf(intent)}`;
}
