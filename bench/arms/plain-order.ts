import { type Mounted, mount } from '../../src/handler.ts';
import { procedure } from '../../src/protocol/procedure.ts';
import * as s from '../../src/protocol/schemas.ts';
import { formatId, formatUuidV7, idRandomBytes } from '../../src/protocol/uuid.ts';
import { random } from '../../src/random.ts';
import { insertOrder, type OrderRow } from '../../src/resources/orders/store.ts';

const plainOrder = procedure({
  method: 'PUT',
  path: '/bench/orders',
  summary: 'Place an order that a retry places again.',
  key: 'accepted',
  body: s.orderInput,
  answers: { 201: s.order },
});

/**
 * `PUT /bench/orders`: the same order through the same pipeline (token, JSON, schema, answer) by one autocommitted INSERT.
 * The contract knows no POST without a key, so it is a PUT to which none is sent.
 */
export function plainOrderProcedures(): Mounted[] {
  return [
    mount(plainOrder, {
      statement({ body }, { tenant, now }) {
        const id = formatUuidV7(now.getTime(), random(idRandomBytes));
        const order: OrderRow = { id, cents: body.cents, item: body.item, created_at: now };
        const orderId = formatId('ord', id);
        return {
          answer: {
            status: 201,
            headers: { Location: `/v1/orders/${orderId}` },
            body: { order_id: orderId, cents: order.cents, item: order.item, created_at: now.toISOString() },
          },
          work: (sql) => insertOrder(sql, tenant, order),
        };
      },
    }),
  ];
}
