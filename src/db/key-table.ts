import type postgres from 'postgres';
import type { KeyHome } from './pool.ts';

/** A table of the key as a statement names it. */
export function keyTable(sql: postgres.Sql, { keySchema }: KeyHome, table: 'idem' | 'buckets') {
  return sql.unsafe(keySchema === undefined ? table : `${quoteName(keySchema)}.${table}`);
}

/** An identifier in quotes. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
