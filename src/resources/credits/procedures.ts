import { addCredits, type LedgerRow, maxBalanceMicros, readLedger } from '../../credits/books.ts';
import type { Database } from '../../db/pool.ts';
import { type Mounted, mount } from '../../handler.ts';
import { contract } from '../../protocol/contract.ts';
import { problem } from '../../protocol/errors.ts';
import { formatId, formatUuidV7, idRandomBytes } from '../../protocol/uuid.ts';
import { random } from '../../random.ts';
import { listBinding, type Pager, pageAnswer } from '../page.ts';

/** The procedures of `/v1/credits` and `/v1/ledger`. */
export function creditProcedures(db: Database, pager: Pager): Mounted[] {
  return [
    mount(contract.addCredits, {
      async commit(tx, _prepared, { body }, { tenant, now }) {
        const sourceId = formatId('crd', formatUuidV7(now.getTime(), random(idRandomBytes)));
        const [entry] = await addCredits(tx.sql, tenant, { amountMicros: body.amount_micros, sourceId });
        if (entry === undefined) {
          const message = `must leave the balance at or below ${maxBalanceMicros}`;
          throw problem('invalid_body', { members: { issues: [{ path: '/amount_micros', message }] } });
        }
        return { status: 201, body: ledgerItem(entry) };
      },
    }),

    mount(contract.listLedger, {
      async read({ query: { limit, after } }, { tenant }) {
        const binding = listBinding(tenant, contract.listLedger.path);
        const beforeId = pager.start(binding, after)?.[0];
        const { balance, rows } = await readLedger(db, tenant, beforeId, limit + 1);
        return pageAnswer(pager, {
          binding,
          limit,
          after,
          rows,
          position: (entry) => [entry.id],
          item: ledgerItem,
          // An entry never changes.
          version: (entry) => [entry.id],
          extra: balance,
        });
      },
    }),
  ];
}

function ledgerItem(entry: LedgerRow) {
  const { id, kind, amount_micros, source_type, source_id, unknown_attempts, created_at } = entry;
  return {
    entry_id: formatId('led', id),
    kind,
    amount_micros,
    source_type,
    source_id,
    ...(unknown_attempts === 0 ? {} : { unknown_attempts }),
    created_at: created_at.toISOString(),
  };
}
