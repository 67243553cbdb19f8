import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import postgres from 'postgres';
import { type PrivateServer, startPrivateServer } from '../helpers/database.ts';
import type { LoadReport } from './fault-load.ts';

const program = fileURLToPath(new URL('./fault-load.ts', import.meta.url));
/** Milliseconds of session kills before and after the restart of Postgres. */
const eachMs = 2_000;

let server: PrivateServer;
before(async () => {
  server = await startPrivateServer();
});
after(() => server.remove());

for (const prepare of ['true', 'false']) {
  test(`sessions killed under load and a restart of Postgres cost requests, not the process or a connection (prepare ${prepare})`, {
    timeout: 60_000,
  }, async (t) => {
    const url = await server.createDatabase();
    const setUp = postgres(url, { max: 1 });
    await setUp`create table pairs (id uuid, part int, filler text, primary key (id, part))`;
    await setUp.end();

    const child = spawn(process.execPath, ['--import', 'tsx', program], {
      env: { ...process.env, DATABASE_URL: url, PREPARE: prepare },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const exited = once(child, 'exit');
    t.after(() => child.kill('SIGKILL'));
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    await lines.next();

    const kills = (await killSessions(eachMs)) + (await restart()) + (await killSessions(eachMs));
    child.stdin.end();
    const last = (await lines.next()).value;
    const [code] = await exited;
    assert.equal(code, 0, 'the process lives');
    const report = JSON.parse(last as string) as LoadReport;
    const faults = Object.values(report.failures).reduce((sum, n) => sum + n, 0);

    assert.ok(kills > 30 && faults > 30, `it was hit: ${kills} kills, ${faults} faults`);
    assert.deepEqual(
      Object.keys(report.failures).filter((name) => !/^(lost|connect|deadline|wait)( \(unknown\))?$/.test(name)),
      [],
    );
    assert.ok(report.committed.length > 30, 'work goes on');
    // The wait for a connection and the work each have the limit of a second.
    assert.ok(report.slowestMs < 2_500, `the slowest took ${report.slowestMs} ms`);
    assert.equal(report.openAtEnd, 6, 'the pool is whole');
    assert.ok(report.settledMs < 1_000, `all connections answer: ${report.settledMs} ms`);

    const check = postgres(url, { max: 1 });
    const halves = await check`select id from pairs group by id having count(*) <> 2`;
    const stored = new Set((await check`select id from pairs where part = 1`).map((row) => row.id as string));
    await check.end();
    assert.equal(halves.length, 0, 'no transaction was split');
    assert.deepEqual(
      report.committed.filter((id) => !stored.has(id)),
      [],
      'what was acknowledged is there',
    );
    assert.deepEqual(
      report.nothing.filter((id) => stored.has(id)),
      [],
      'what was said to be undone is not',
    );
  });
}

/** Ends random sessions of the load, a few every few milliseconds. */
async function killSessions(ms: number): Promise<number> {
  const sql = postgres(server.url, { max: 1, onnotice: () => {} });
  let kills = 0;
  for (const end = performance.now() + ms; performance.now() < end; ) {
    const killed = await sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = 'retry-safe' and pid <> pg_backend_pid() and random() < 0.15`;
    kills += killed.length;
    await sleep(Math.random() * 8);
  }
  await sql.end();
  return kills;
}

async function restart(): Promise<number> {
  await server.stop();
  await sleep(300);
  await server.start();
  return 0;
}
