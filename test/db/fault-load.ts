import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Database, DatabaseUnavailable, openDatabase } from '../../src/db/pool.ts';
import { sqlstateOf } from '../../src/db/sqlstate.ts';

/*
 * A program of its own for `faults.test.ts`: works on the database at DATABASE_URL until its standard input ends, and then
 * writes one line of JSON. An exception outside any promise ends it, as it would end the server.
 */

/** What became of the work. */
export type LoadReport = {
  /** Pairs of rows whose transaction was acknowledged, and those of which it was said that nothing was committed. */
  committed: string[];
  nothing: string[];
  reads: number;
  failures: Record<string, number>;
  slowestMs: number;
  /** Milliseconds a statement took at the end, for each connection at once. */
  settledMs: number;
  openAtEnd: number;
};

const workers = 12;
const max = 6;
const queryTimeoutMs = 1_000;

const db = openDatabase({
  url: process.env.DATABASE_URL as string,
  max,
  prepare: process.env.PREPARE !== 'false',
  queryTimeoutMs,
});
const report: LoadReport = {
  committed: [],
  nothing: [],
  reads: 0,
  failures: {},
  slowestMs: 0,
  settledMs: 0,
  openAtEnd: 0,
};
let isOver = false;
process.stdin.resume().once('end', () => {
  isOver = true;
});
process.stdout.write('working\n');

await Promise.all(Array.from({ length: workers }, (_, i) => work(i)));
const began = performance.now();
await Promise.all(Array.from({ length: max * 2 }, () => db.query((sql) => sql`select pg_sleep(0.01)`)));
report.settledMs = performance.now() - began;
report.openAtEnd = db.stats().open;
await db.close(1_000);
process.stdout.write(`${JSON.stringify(report)}\n`);

async function work(i: number): Promise<void> {
  for (let n = i; !isOver; n += 1) {
    const start = performance.now();
    const id = randomUUID();
    try {
      if (n % 3 === 0) {
        await read(db, n);
        report.reads += 1;
      } else {
        await writePair(db, id, n);
        report.committed.push(id);
      }
    } catch (error) {
      const isAway = error instanceof DatabaseUnavailable;
      const name = isAway
        ? `${error.reason}${error.commitUnknown ? ' (unknown)' : ''}`
        : `${sqlstateOf(error)} ${error}`;
      report.failures[name] = (report.failures[name] ?? 0) + 1;
      if (!isAway || !error.commitUnknown) report.nothing.push(id);
      await sleep(2);
    }
    report.slowestMs = Math.max(report.slowestMs, performance.now() - start);
  }
}

async function read(db: Database, n: number): Promise<void> {
  const rows = await db.query((sql) => sql`select ${n}::int as n, repeat('x', ${n % 5_000}::int) as filler`);
  if (rows[0]?.n !== n) throw new Error('an answer to another question');
}

/** Two rows under one id, some at once and some after a pause, so that a session dies at every point of a transaction. */
async function writePair(db: Database, id: string, n: number): Promise<void> {
  await db.transaction(async ({ sql }) => {
    const first = sql`insert into pairs (id, part, filler) values (${id}, 1, ${'y'.repeat(n % 3_000)})`;
    if (n % 2 === 0) await first;
    else void first.execute();
    if (n % 5 === 0) await sleep(n % 4);
    await sql`insert into pairs (id, part) values (${id}, 2)`;
  });
}
