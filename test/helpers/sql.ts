import type { TestContext } from 'node:test';
import postgres from 'postgres';
import { atEnd } from './cleanup.ts';

/** A connection of the test's own to a server's database, for looking, ageing rows and holding locks. */
export function testSql(t: TestContext, databaseUrl: string): postgres.Sql {
  const sql = postgres(databaseUrl, { max: 4, fetch_types: false, onnotice: () => {} });
  atEnd(t, () => sql.end({ timeout: 1 }));
  return sql;
}

/** How many orders are there: the N of a case. */
export async function countOrders(sql: postgres.Sql): Promise<number> {
  const rows = await sql<{ n: number }[]>`select count(*)::int as n from orders`;
  return rows[0]?.n ?? 0;
}

/** A statement that is held open; `release` lets it end. */
export type Hold = { release(): Promise<void> };

/** Begins a transaction, runs `statements` in it and keeps it open until `release`, which rolls it back. */
export async function holdTransaction(
  t: TestContext,
  databaseUrl: string,
  statements: (sql: postgres.Sql) => Promise<unknown>,
): Promise<Hold> {
  const sql = postgres(databaseUrl, { max: 1, fetch_types: false, onnotice: () => {} });
  await sql`begin`;
  await statements(sql);
  let ended: Promise<void> | undefined;
  const end = async () => {
    await sql`rollback`;
    await sql.end({ timeout: 1 });
  };
  const release = () => (ended ??= end());
  atEnd(t, release);
  return { release };
}

/** Names the lock of `holdCompletions`; any number. */
const gateKey = 4_711;

/** A place where transactions of the server stop. */
export type Stop = Hold & {
  /** Resolves when one of them is there. */
  arrived(): Promise<void>;
};

/** Makes every transaction that completes a claim (of `key` alone where one is given) stop in its COMMIT until `release`. */
export function holdCommits(t: TestContext, databaseUrl: string, key?: string): Promise<Stop> {
  return holdCompletions(t, databaseUrl, 'deferrable initially deferred', key);
}

/** Makes every transaction that completes a claim stop in the UPDATE that does so, until `release`. */
export function holdUpdates(t: TestContext, databaseUrl: string): Promise<Stop> {
  return holdCompletions(t, databaseUrl, '', undefined);
}

/** A trigger takes a lock that the test holds; a deferred one does so when COMMIT is executed. */
async function holdCompletions(t: TestContext, databaseUrl: string, when: string, key?: string): Promise<Stop> {
  const sql = testSql(t, databaseUrl);
  await sql.unsafe(`
    create function stop_here() returns trigger language plpgsql as $$
    begin perform pg_advisory_xact_lock_shared(${gateKey}); return null; end $$;
    create constraint trigger stop_here after update on idem ${when}
      for each row when (new.state = 'done'${key === undefined ? '' : ` and new.key = '${key}'`})
      execute function stop_here();`);
  const held = await holdTransaction(t, databaseUrl, (gate) => gate`select pg_advisory_xact_lock(${gateKey})`);
  return {
    release: held.release,
    arrived: () =>
      until(async () => {
        const rows = await sql`select 1 from pg_locks where locktype = 'advisory' and objid = ${gateKey} and not granted
          and database = (select oid from pg_database where datname = current_database())`;
        return rows.length > 0;
      }),
  };
}

/** Asks until the answer is yes: for what only Postgres knows and tells nobody. Fails after ten seconds. */
export async function until(isSo: () => Promise<boolean> | boolean): Promise<void> {
  const deadlineMs = performance.now() + 10_000;
  while (!(await isSo())) {
    if (performance.now() > deadlineMs) throw new Error('what was waited for did not happen in ten seconds');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
