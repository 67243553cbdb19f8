import { tenantDigest } from '../../auth/tenant-digest.ts';
import type { Database } from '../../db/pool.ts';
import { type Mounted, mount } from '../../handler.ts';
import { contract } from '../../protocol/contract.ts';
import { problem } from '../../protocol/errors.ts';
import { formatId, formatUuidV7, idRandomBytes, parseId } from '../../protocol/uuid.ts';
import { formatVersionTag } from '../../protocol/version-tag.ts';
import { random } from '../../random.ts';
import { listBinding, type Pager, pageAnswer } from '../page.ts';
import { findOrder, insertOrder, listOrders, type OrderRow } from './store.ts';

const prefix = 'ord';

/** The procedures of `/v1/orders`. */
export function orderProcedures(db: Database, pager: Pager): Mounted[] {
  return [
    mount(contract.createOrder, {
      statement({ body }, { tenant, now }) {
        const id = formatUuidV7(now.getTime(), random(idRandomBytes));
        const order: OrderRow = { id, cents: body.cents, item: body.item, created_at: now };
        return {
          answer: { status: 201, headers: { Location: `/v1/orders/${formatId(prefix, id)}` }, body: orderItem(order) },
          work: (sql) => insertOrder(sql, tenant, order),
        };
      },
    }),

    mount(contract.getOrder, {
      async read({ params }, { tenant }) {
        const id = parseId(prefix, params.id);
        const order = id === undefined ? undefined : await findOrder(db, tenant, id);
        if (order === undefined) throw problem('not_found');
        // An order never changes: it stays at its first version.
        const ETag = formatVersionTag(params.id, 1, tenantDigest(tenant));
        return { status: 200, headers: { ETag }, body: orderItem(order) };
      },
    }),

    mount(contract.listOrders, {
      async read({ query: { limit, after } }, { tenant }) {
        const binding = listBinding(tenant, contract.listOrders.path);
        const beforeId = pager.start(binding, after)?.[0];
        return pageAnswer(pager, {
          binding,
          limit,
          after,
          rows: await listOrders(db, tenant, beforeId, limit + 1),
          position: (order) => [order.id],
          item: orderItem,
          version: (order) => [order.id],
        });
      },
    }),
  ];
}

function orderItem(order: OrderRow) {
  return {
    order_id: formatId(prefix, order.id),
    cents: order.cents,
    item: order.item,
    created_at: order.created_at.toISOString(),
  };
}
