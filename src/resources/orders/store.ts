import type postgres from 'postgres';
import type { Database } from '../../db/pool.ts';

/** An order as it is kept; `id` is a UUIDv7 without its prefix. */
export type OrderRow = {
  readonly id: string;
  readonly cents: number;
  readonly item: string;
  readonly created_at: Date;
};

/** Inserts an order if the claim is still ours: part of the completion's statement. */
export function insertOrder(sql: postgres.Sql, tenant: string, order: OrderRow) {
  return sql`
    insert into orders (tenant, id, cents, item, created_at)
    select ${tenant}, ${order.id}::uuid, ${order.cents}::integer, ${order.item}, ${order.created_at}::timestamptz
    from fence`;
}

/** One order of the tenant. */
export async function findOrder(db: Database, tenant: string, id: string): Promise<OrderRow | undefined> {
  const rows = await db.query(
    (sql) => sql<OrderRow[]>`
      select id, cents, item, created_at from orders where tenant = ${tenant} and id = ${id}`,
  );
  return rows[0];
}

/** Up to `limit` orders of the tenant before `beforeId`, newest first: ids sort by creation. */
export async function listOrders(
  db: Database,
  tenant: string,
  beforeId: string | undefined,
  limit: number,
): Promise<readonly OrderRow[]> {
  return await db.query(
    (sql) => sql<OrderRow[]>`
      select id, cents, item, created_at from orders
      where tenant = ${tenant} ${beforeId === undefined ? sql`` : sql`and id < ${beforeId}`}
      order by id desc limit ${limit}`,
  );
}
