import { PgDialect } from 'drizzle-orm/pg-core';
import { PostgresJsDatabase, PostgresJsSession } from 'drizzle-orm/postgres-js';
import type postgres from 'postgres';
import type { Database, Orm } from './pool.ts';

/** drizzle's builder over the pool, for reads: each statement by itself, on whatever connection is free. */
export function openOrm(db: Database): Orm {
  const unsafe = (text: string, args: never[]) => {
    let asValues = false;
    const run = async () => {
      // drizzle says in the same turn whether it wants objects or plain rows.
      await undefined;
      return await db.query((sql) => {
        const statement = sql.unsafe<postgres.Row[]>(text, args, { prepare: true });
        return (asValues ? statement.values() : statement) as postgres.PendingQuery<postgres.Row[]>;
      });
    };
    const rows = run();
    const values = () => {
      asValues = true;
      return rows;
    };
    return Object.assign(rows, { values });
  };
  const dialect = new PgDialect();
  return new PostgresJsDatabase(dialect, new PostgresJsSession({ unsafe } as never, dialect, undefined), undefined);
}
