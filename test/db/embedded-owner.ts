import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { startEmbedded } from '../../src/db/embedded.ts';

/*
 * A program of its own for `embedded.test.ts`: owns an embedded Postgres in the folder given, and drains for a while on
 * SIGINT as a server does.
 */

const pg = await startEmbedded({ dataDir: process.argv[2] as string, fsync: false }).catch((error: Error) => {
  process.stdout.write(`${JSON.stringify({ error: error.message })}\n`);
  process.exit(1);
});
const alive = setInterval(() => {}, 1_000);
process.once('SIGINT', async () => {
  await sleep(300);
  const sql = postgres(pg.url, { max: 1 });
  const [row] = await sql`select 'still there' as word`;
  await sql.end();
  await pg.stop();
  process.stdout.write(`${JSON.stringify(row)}\n`);
  clearInterval(alive);
});
process.stdout.write(`${JSON.stringify({ url: pg.url, pid: pg.pid })}\n`);
