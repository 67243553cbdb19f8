import { Param, type SQL, sql } from 'drizzle-orm';

/** Runs one statement with its values for $1, $2 … and answers its rows. */
export type Run = (text: string, values: readonly unknown[]) => Promise<readonly object[]>;

/** A pool or a client of node-postgres. */
export type PgDriver = { query(text: string, values: unknown[]): Promise<{ readonly rows: readonly object[] }> };

/** postgres.js, or the `sql` that its `begin` hands out. */
export type PostgresJsDriver = {
  unsafe(text: string, values: never[], options: { prepare: boolean }): PromiseLike<readonly object[]>;
};

/** drizzle over either of them, or the transaction that it hands out. */
export type DrizzleDriver = { execute(query: SQL): PromiseLike<unknown> };

/** Whatever runs statements: a pool for the claims, and a transaction for what must commit with your writes. */
export type Driver = Run | PgDriver | PostgresJsDriver | DrizzleDriver;

/** One way to run a statement, whoever does it. */
export function runOf(driver: Driver): Run {
  // drizzle's objects have a `query` too, which is no function; postgres.js is itself a function.
  if ('unsafe' in driver)
    return async (text, values) => await driver.unsafe(text, values as never[], { prepare: true });
  if ('execute' in driver) return async (text, values) => rowsOf(await driver.execute(drizzleSql(text, values)));
  if ('query' in driver) return async (text, values) => (await driver.query(text, [...values])).rows;
  return driver;
}

/** node-postgres puts rows into a result, postgres.js answers an array of them. */
function rowsOf(result: unknown): readonly object[] {
  return Array.isArray(result) ? result : (result as { rows: readonly object[] }).rows;
}

function drizzleSql(text: string, values: readonly unknown[]): SQL {
  const texts = text.split(/\$\d+/);
  return sql(Object.assign(texts, { raw: texts }), ...values.map((value) => new Param(value)));
}
