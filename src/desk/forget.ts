import type { Database } from '../db/pool.ts';
import { tenantTables } from '../db/tables.ts';

/** A tenant's rows by table. */
export type TenantRows = { readonly table: string; readonly rows: number };

/** Counts what a tenant has, table by table. */
export async function countTenant(db: Database, tenant: string): Promise<TenantRows[]> {
  const counted: TenantRows[] = [];
  for (const table of tenantTables) {
    const [row] = await db.query(
      (sql) => sql<{ rows: number }[]>`select count(*)::float8 as rows from ${sql(table)} where tenant = ${tenant}`,
    );
    counted.push({ table, rows: row?.rows ?? 0 });
  }
  return counted;
}

/** Deletes up to `limit` rows of a tenant in one table and answers how many; 0: nothing is left. Short locks, no long transaction. */
export async function forgetOnce(db: Database, tenant: string, table: string, limit: number): Promise<number> {
  const rows = await db.query(
    (sql) => sql`
      delete from ${sql(table)} where tenant = ${tenant}
        and ctid = any(array(select ctid from ${sql(table)} where tenant = ${tenant} limit ${limit}))
      returning 1`,
  );
  return rows.length;
}
