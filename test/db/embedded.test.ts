import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import postgres from 'postgres';
import { isPostmasterOf, startOf } from '../../src/db/embedded/processes.ts';
import {
  type EmbeddedOptions,
  type EmbeddedPostgres,
  EmbeddedPostgresError,
  startEmbedded,
} from '../../src/db/embedded.ts';
import { temporaryFolder } from '../helpers/database.ts';

const program = fileURLToPath(new URL('./embedded-owner.ts', import.meta.url));

let dataDir: string;
const children: ChildProcess[] = [];
const servers: EmbeddedPostgres[] = [];

before(() => {
  dataDir = temporaryFolder();
});
after(async () => {
  await Promise.all(servers.map((pg) => pg.stop()));
  for (const child of children) child.kill('SIGKILL');
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
});

async function start(options: Partial<EmbeddedOptions> = {}) {
  const pg = await startEmbedded({ dataDir, fsync: false, ...options });
  servers.push(pg);
  return pg;
}
const notLinux = process.platform !== 'linux' && 'finds the supervisor through /proc';
const cluster = () => join(dataDir, 'cluster');

/** One statement on a connection of its own. */
async function ask(url: string, statement: string): Promise<postgres.Row | undefined> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    return (await sql.unsafe(statement))[0];
  } finally {
    await sql.end();
  }
}

/** A process that owns the Postgres of the folder; `first` is what it said. */
async function startOwner(folder: string = dataDir) {
  const child = spawn(process.execPath, ['--import', 'tsx', program, folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  children.push(child);
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
  const next = async () => JSON.parse((await lines.next()).value as string);
  const exited = once(child, 'exit');
  const first = (await next()) as { url: string; pid: number; error?: string };
  return { child, first, next, exited };
}

async function gone(pid: number): Promise<void> {
  const limit = performance.now() + 20_000;
  while (startOf(pid) !== undefined) {
    assert.ok(performance.now() < limit, `process ${pid} is still there`);
    await sleep(10);
  }
}

test('the first start makes a cluster on the loopback address alone, behind a password of its own', async () => {
  const pg = await start();
  const row = await ask(
    pg.url,
    `select current_setting('server_version_num')::int as version,
    current_setting('listen_addresses') as address, current_setting('unix_socket_directories') as sockets,
    current_setting('server_encoding') as encoding, 'Ä' < 'a' as linguistic`,
  );
  assert.deepEqual(
    { ...row, version: 18 },
    {
      version: 18,
      address: '127.0.0.1',
      sockets: '',
      encoding: 'UTF8',
      linguistic: false,
    },
  );
  const wrong = pg.url.replace(/:[^:@]+@/, ':wrong@');
  await assert.rejects(ask(wrong, 'select 1'), { code: '28P01' });
  assert.equal(statSync(join(cluster(), 'password')).mode & 0o777, 0o600);
  await ask(pg.url, 'create table kept as select 42 as n');
  await pg.stop();
  assert.equal(startOf(pg.pid), undefined);
  await pg.stop();
});

test('the next start keeps the data', async () => {
  const pg = await start();
  assert.deepEqual({ ...(await ask(pg.url, 'select n from kept')) }, { n: 42 });
  await pg.stop();
});

test('an owner that is killed takes its Postgres along, and the next start need not wait for a person', async () => {
  const owner = await startOwner();
  await ask(owner.first.url, 'insert into kept values (43)');
  owner.child.kill('SIGKILL');
  await owner.exited;
  const pg = await start();
  assert.notEqual(pg.pid, owner.first.pid);
  assert.equal(startOf(owner.first.pid), undefined);
  assert.deepEqual({ ...(await ask(pg.url, 'select sum(n)::int as sum from kept')) }, { sum: 85 });
  await pg.stop();
});

test('a Postgres whose owner and supervisor were both killed is ended by the next start', {
  skip: notLinux,
}, async () => {
  const owner = await startOwner();
  const supervisor = Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${owner.first.pid}/stat`, 'utf8'))?.[1]);
  process.kill(supervisor, 'SIGKILL');
  owner.child.kill('SIGKILL');
  await owner.exited;
  assert.ok(isPostmasterOf(owner.first.pid, cluster()), 'it is an orphan');
  const pg = await start();
  assert.equal(startOf(owner.first.pid), undefined);
  await pg.stop();
});

test('an owner that simply exits takes its Postgres along', async () => {
  const owner = await startOwner();
  owner.child.kill('SIGTERM');
  await owner.exited;
  await gone(owner.first.pid);
});

test('a Ctrl-C in the terminal does not reach Postgres before its owner has drained', async () => {
  const owner = await startOwner();
  // What a terminal does: the signal goes to the whole process group.
  process.kill(-(owner.child.pid as number), 'SIGINT');
  assert.deepEqual(await owner.next(), { word: 'still there' });
  await owner.exited;
  assert.equal(startOf(owner.first.pid), undefined);
});

test('a folder in use is refused in a sentence that names the process', async () => {
  const owner = await startOwner();
  await assert.rejects(start(), (error: Error) => {
    assert.ok(error instanceof EmbeddedPostgresError);
    assert.match(error.message, new RegExp(`in use by process ${owner.child.pid}: stop that, or set DATA_DIR`));
    return true;
  });
  assert.deepEqual({ ...(await ask(owner.first.url, 'select 1 as one')) }, { one: 1 }, 'the other one still runs');
  owner.child.kill('SIGTERM');
  await owner.exited;
  await gone(owner.first.pid);
});

test('of several that start at once on a folder whose owner died, one gets it', async () => {
  const dead = await startOwner();
  dead.child.kill('SIGKILL');
  await dead.exited;
  const owners = await Promise.all([startOwner(), startOwner(), startOwner()]);
  const winners = owners.filter((owner) => owner.first.error === undefined);
  assert.equal(winners.length, 1);
  for (const owner of owners)
    if (owner.first.error !== undefined) assert.match(owner.first.error, /in use by process \d+/);
  winners[0]?.child.kill('SIGTERM');
  await gone(winners[0]?.first.pid as number);
});

test("a lock file whose pid is another program's by now does not stop the start", async () => {
  writeFileSync(join(cluster(), 'postmaster.pid'), `${process.pid}\n${cluster()}\n1\n1\n\n127.0.0.1\n0 0\nready   \n`);
  const pg = await start();
  assert.deepEqual({ ...(await ask(pg.url, 'select 1 as one')) }, { one: 1 });
  await pg.stop();
});

test("an owner's file whose pid is another program's by now counts no more", async () => {
  writeFileSync(join(dataDir, 'owner.json'), JSON.stringify({ pid: process.pid, start: 'another time' }));
  await (await start()).stop();
  writeFileSync(join(dataDir, 'owner.json'), '{"pid":');
  await (await start()).stop();
  assert.equal(existsSync(join(dataDir, 'owner.json')), false);
});

test('a postmaster that is killed is noticed, and a start follows', async (t) => {
  const pg = await start();
  const idle = postgres(pg.url, { max: 3, onnotice: () => {} });
  t.after(() => idle.end({ timeout: 0 }));
  await Promise.all([1, 2, 3].map(() => idle`select pg_sleep(0.05)`));
  process.kill(pg.pid, 'SIGKILL');
  // A server keeps no process alive, and this one may have nothing else to wait for.
  const alive = setInterval(() => {}, 1_000);
  await pg.ended.finally(() => clearInterval(alive));
  const next = await start({ port: pg.port });
  assert.deepEqual({ ...(await ask(next.url, 'select sum(n)::int as sum from kept')) }, { sum: 85 });
  await next.stop();
});

test('a cluster that was only half made is made anew', async () => {
  const folder = join(dataDir, 'half');
  mkdirSync(folder);
  const child = spawn(process.execPath, ['--import', 'tsx', program, folder], { stdio: 'ignore' });
  children.push(child);
  while (!readdirSync(folder).some((name) => /^unfinished-\w+$/.test(name) && existsSync(join(folder, name, 'base'))))
    await sleep(5);
  child.kill('SIGKILL');
  await once(child, 'exit');
  assert.equal(existsSync(join(folder, 'cluster')), false);
  const pg = await start({ dataDir: folder });
  assert.deepEqual({ ...(await ask(pg.url, 'select 1 as one')) }, { one: 1 });
  await pg.stop();
  assert.deepEqual(readdirSync(folder).sort(), ['cluster', 'postgres.log']);
});

test("a port that stays taken is an error with Postgres' own words", async () => {
  const blocker = createServer().listen(0, '127.0.0.1');
  await once(blocker, 'listening');
  const { port } = blocker.address() as { port: number };
  await assert.rejects(start({ port }), (error: Error) => {
    assert.ok(error instanceof EmbeddedPostgresError);
    assert.match(error.message, /did not start in .*\n(.*\n)*.*Address already in use/);
    return true;
  });
  blocker.close();
  await (await start()).stop();
});

test('a cluster of another PostgreSQL version is refused, not touched', async () => {
  const folder = join(dataDir, 'old');
  mkdirSync(join(folder, 'cluster'), { recursive: true });
  writeFileSync(join(folder, 'cluster', 'PG_VERSION'), '12\n');
  await assert.rejects(start({ dataDir: folder }), /is of PostgreSQL 12, this is 18: remove the folder/);
});

test('two folders have two servers side by side', async () => {
  const [one, two] = await Promise.all([start(), start({ dataDir: join(dataDir, 'half') })]);
  assert.notEqual(one.port, two.port);
  await Promise.all([one.stop(), two.stop()]);
});

const notRoot = process.getuid?.() !== 0 && 'only for root, who must run Postgres as another user';
test('root opens a private data folder for the user postgres, but not its files', { skip: notRoot }, async () => {
  const folder = join(dataDir, 'private');
  mkdirSync(folder, { mode: 0o700 });
  const pg = await start({ dataDir: folder });
  assert.equal(pg.cluster, join(folder, 'cluster'));
  assert.equal(statSync(folder).mode & 0o777, 0o711);
  assert.equal(statSync(pg.cluster).mode & 0o077, 0);
  await pg.stop();
});

test('root keeps the cluster elsewhere when the user postgres cannot reach the folder, and says so', {
  skip: notRoot,
}, async () => {
  const hidden = join(dataDir, 'hidden');
  mkdirSync(hidden, { mode: 0o700 });
  const notices: string[] = [];
  const options = { dataDir: join(hidden, 'data'), onNotice: (sentence: string) => notices.push(sentence) };
  const pg = await start(options);
  await ask(pg.url, 'create table kept as select 1 as n');
  await pg.stop();
  assert.match(
    notices[0] ?? '',
    /is kept in \/var\/lib\/retry-safe\/\w+: the user "postgres", as whom it runs, can't reach/,
  );
  const again = await start(options);
  assert.equal((await ask(again.url, 'select n from kept'))?.n, 1);
  await again.stop();
  rmSync(join(again.cluster, '..'), { recursive: true });
});
