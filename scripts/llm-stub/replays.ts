import type { Plan } from '../../src/llm/plan.ts';

/** What a key means to a provider that honours it. */
export type Opened =
  | { readonly kind: 'first'; keep(plan: Plan): void; forget(): void }
  | { readonly kind: 'known'; readonly plan: Plan }
  | { readonly kind: 'refused'; readonly status: 400 | 409; readonly message: string };

type Entry = { readonly digest: string; readonly plan: Plan | undefined };

/** The memory of a provider that honours Idempotency-Key: answered calls are known again, failed ones are forgotten. */
export function createReplays(): { open(key: string, digest: string): Opened; reset(): void } {
  const entries = new Map<string, Entry>();
  return {
    open(key, digest) {
      const entry = entries.get(key);
      if (entry === undefined) {
        entries.set(key, { digest, plan: undefined });
        return {
          kind: 'first',
          // At once: what is known needs no thinking.
          keep: (plan) => entries.set(key, { digest, plan: { ...plan, latencyMs: 0, firstMs: 0 } }),
          forget: () => entries.delete(key),
        };
      }
      if (entry.digest !== digest) {
        return { kind: 'refused', status: 400, message: 'This Idempotency-Key belongs to another request.' };
      }
      if (entry.plan === undefined) {
        return {
          kind: 'refused',
          status: 409,
          message: 'The first request with this Idempotency-Key is still running.',
        };
      }
      return { kind: 'known', plan: entry.plan };
    },
    reset: () => entries.clear(),
  };
}
