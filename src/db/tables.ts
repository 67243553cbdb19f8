import { is } from 'drizzle-orm';
import { getTableConfig, PgTable } from 'drizzle-orm/pg-core';
import * as schema from './schema.ts';

/** The names of all tables; each has a tenant, and its primary key begins with it. */
export const tenantTables: readonly string[] = Object.values(schema).flatMap((value: unknown) =>
  is(value, PgTable) ? [getTableConfig(value).name] : [],
);
