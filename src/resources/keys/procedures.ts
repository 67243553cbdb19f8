import { type Mounted, mount } from '../../handler.ts';
import type { Keyed } from '../../idempotency/keyed.ts';
import { contract } from '../../protocol/contract.ts';
import { problem } from '../../protocol/errors.ts';
import { parseIdempotencyKey } from '../../protocol/idempotency-key.ts';

/** The procedure of `/v1/idempotency-keys/{key}`: what became of a key, never its stored body. */
export function keyProcedures(keyed: Keyed): Mounted[] {
  return [
    mount(contract.getIdempotencyKey, {
      async read({ params }, { tenant }) {
        const parsed = parseIdempotencyKey([params.key]);
        const row = parsed.kind === 'key' ? await keyed.lookUp(tenant, parsed.key) : undefined;
        if (parsed.kind !== 'key' || row === undefined) throw problem('not_found');
        return {
          status: 200,
          body: {
            key: parsed.key,
            state: row.phase,
            attempt: row.attempt,
            created_at: row.createdAt.toISOString(),
            expires_at: row.expiresAt.toISOString(),
            status: row.answer?.status ?? null,
            location: row.answer?.headers.Location ?? null,
          },
        };
      },
    }),
  ];
}
