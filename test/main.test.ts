import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { type TestContext, test } from 'node:test';
import { atEnd } from './helpers/cleanup.ts';
import { temporaryFolder } from './helpers/database.ts';
import { freshDatabase, ProcessEnded, type ServerProcess, startProcess, startWithNpm } from './helpers/server.ts';
import { countOrders, holdCommits, testSql, until } from './helpers/sql.ts';

/** Variables of a first run: nothing but the folder. */
function firstRun(t: TestContext): Record<string, string> & { DATA_DIR: string } {
  const folder = temporaryFolder();
  atEnd(t, () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return { AUTH_SECRET: '', DATA_DIR: folder };
}

/** Processes whose command line names the text, or that are of the process group. */
function processes(text: string, group = -1): string[] {
  const lines = execFileSync('ps', ['-eo', 'pgid=,pid=,args=']).toString().split('\n');
  return lines.filter((line) => line.includes(text) || Number(line.trim().split(/ +/)[0]) === group);
}

/** Nothing of a server is left: neither what its folder is named in nor what its group holds. */
async function assertNothingLeft(dataDir: string, server?: ServerProcess): Promise<void> {
  await until(() => processes(dataDir, server?.child.pid).length === 0);
}

/** What a start that is refused says, and its exit code. */
async function refusal(start: Promise<ServerProcess>): Promise<{ code: number | null; said: string }> {
  try {
    await start;
  } catch (error) {
    if (error instanceof ProcessEnded) return { code: error.code, said: error.message };
    throw error;
  }
  assert.fail('it started');
}

/** The lines of the first screen that belong into a shell. */
function shellLines(output: readonly string[]): string {
  return output.filter((line) => /^(?:[A-Z]+=|curl )/.test(line)).join('\n');
}

const hasCurl = spawnSync('curl', ['--version']).status === 0;

test('a newcomer’s day: npm start, the curl lines pasted, Ctrl-C, a second start, kill -9, a third start, a taken port', {
  skip: hasCurl ? false : 'no curl',
}, async (t) => {
  const env = firstRun(t);
  let startedMs = performance.now();
  const first = await startWithNpm(t, env);
  t.diagnostic(`first start: ${Math.round(performance.now() - startedMs)} ms`);
  await until(() => first.output.includes('Ctrl-C stops the server.'));
  // The first line of the program, behind what npm says of itself.
  const said = first.output.filter((line) => line !== '' && !line.startsWith('> '));
  assert.equal(said[0], `retry-safe listens on ${first.url}`);

  const script = shellLines(first.output);
  const pasted = execFileSync('sh', ['-s'], { input: script, stdio: ['pipe', 'pipe', 'ignore'] }).toString();
  const answers = pasted.split(/(?=HTTP\/1\.1 )/);
  assert.deepEqual(
    answers.map((answer) => answer.slice(9, 12)),
    ['201', '201', '409'],
  );
  const idOf = (answer = '') => /"order_id":"(\w+)"/.exec(answer)?.[1];
  assert.match(answers[1] ?? '', /Idempotent-Replayed: true/);
  assert.ok(idOf(answers[0]) !== undefined && idOf(answers[0]) === idOf(answers[1]));
  assert.match(answers[2] ?? '', /"differs":\["body"\]/);
  const token = /^ACME=(.+)$/m.exec(script)?.[1] as string;
  assert.match(script, /^GLOBEX=.+$/m);

  // A terminal's Ctrl-C goes to the whole group: npm and the program.
  process.kill(-(first.child.pid as number), 'SIGINT');
  await assertNothingLeft(env.DATA_DIR, first);

  startedMs = performance.now();
  const second = await startProcess(t, env);
  t.diagnostic(`second start: ${Math.round(performance.now() - startedMs)} ms`);
  const list = await second.call('GET /v1/orders', { token });
  assert.deepEqual(
    list.json.items.map((order: { order_id: string }) => order.order_id),
    [idOf(answers[0])],
  );
  const replay = await second.call('POST /v1/orders', { token, key: 'k-1', body: { cents: 3_000, item: 'pro-plan' } });
  assert.equal(replay.headers.get('idempotent-replayed'), 'true');

  const { code, said: refused } = await refusal(startProcess(t, env));
  assert.equal(code, 1);
  assert.match(refused, /^[^\n]*in use[^\n]*DATA_DIR[^\n]*$/);
  assert.equal((await second.call('GET /v1/orders', { token })).status, 200);

  const acknowledged = await second.call('POST /v1/orders', { token, key: 'last', body: { cents: 1, item: 'x' } });
  assert.equal(acknowledged.status, 201);
  await second.end('SIGKILL');
  const third = await startProcess(t, env);
  const again = await third.call('POST /v1/orders', { token, key: 'last', body: { cents: 1, item: 'x' } });
  assert.equal(again.text, acknowledged.text);
  assert.equal(await third.end('SIGTERM'), 0);
  await assertNothingLeft(env.DATA_DIR, third);

  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  atEnd(t, () => void taken.close());
  const { port } = taken.address() as { port: number };
  const fourth = await refusal(startProcess(t, { ...env, PORT: String(port) }));
  assert.equal(fourth.code, 1);
  assert.match(fourth.said, new RegExp(`^PORT: ${port} is taken;[^\\n]*PORT[^\\n]*\\.$`));
  await assertNothingLeft(env.DATA_DIR);
});

test('a configuration that does not fit is one sentence that names the variable, and nothing is started', async (t) => {
  const databaseUrl = 'postgres://localhost:1/none';
  const cases: [env: Record<string, string>, said: RegExp][] = [
    [{ PORT: 'abc' }, /^PORT: got "abc"; it takes [^\n]*\.$/],
    [{ AUTH_SECRET: '', DATABASE_URL: databaseUrl }, /^AUTH_SECRET: got nothing;[^\n]*AUTH_JWKS_URL[^\n]*$/],
    [{ AUTH_SECRET: '', HOST: '0.0.0.0' }, /^AUTH_SECRET: got nothing;[^\n]*HOST 0\.0\.0\.0[^\n]*$/],
  ];
  const folder = firstRun(t).DATA_DIR;
  const noSuchDatabase = new URL(await freshDatabase(t));
  noSuchDatabase.pathname = '/no_such_database';
  cases.push(
    [{ DATABASE_URL: databaseUrl }, /^DATABASE_URL: [^\n]*could be opened[^\n]*\.$/],
    [{ DATABASE_URL: noSuchDatabase.href }, /^DATABASE_URL: [^\n]*no_such_database[^\n]*\.$/],
  );
  const ends = await Promise.all(cases.map(([env]) => refusal(startProcess(t, { DATA_DIR: folder, ...env }))));
  for (const [i, { code, said }] of ends.entries()) {
    assert.equal(code, 1);
    assert.match(said, cases[i]?.[1] as RegExp);
  }
  assert.deepEqual(processes(folder), []);
});

test('several processes that start at once on an empty database all serve, on one schema', async (t) => {
  const databaseUrl = await freshDatabase(t);
  const sql = testSql(t, databaseUrl);
  await sql.unsafe('drop schema if exists drizzle cascade; drop schema public cascade; create schema public');
  const servers = await Promise.all([1, 2].map(() => startProcess(t, { DATABASE_URL: databaseUrl })));
  const answers = [];
  for (const server of servers) {
    answers.push(await server.call('POST /v1/orders', { key: 'k', body: { cents: 1, item: 'x' } }));
  }
  assert.equal(new Set(answers.map((answer) => answer.text)).size, 1);
  assert.equal(await countOrders(sql), 1);
});

test('a signal while a request is in its COMMIT: it is finished and answered before the process ends', async (t) => {
  const databaseUrl = await freshDatabase(t);
  const sql = testSql(t, databaseUrl);
  const server = await startProcess(t, { DATABASE_URL: databaseUrl });
  const commits = await holdCommits(t, databaseUrl);
  const running = server.call('POST /v1/orders', { key: 'k', body: { cents: 1, item: 'x' } });
  await commits.arrived();
  const ended = server.end('SIGINT');
  await until(() => server.output.some((line) => line.includes('"stopping"')));
  await commits.release();
  assert.equal((await running).status, 201);
  assert.equal(await ended, 0);
  assert.equal(await countOrders(sql), 1);
  assert.equal((await sql`select 1 from idem where state = 'done'`).length, 1);
});

test('a second signal, later than the twin that npm hands on, ends the process without waiting', async (t) => {
  const databaseUrl = await freshDatabase(t);
  const server = await startProcess(t, { DATABASE_URL: databaseUrl, SHUTDOWN_GRACE_MS: '60000' });
  const commits = await holdCommits(t, databaseUrl);
  const running = server.call('POST /v1/orders', { key: 'k', body: { cents: 1, item: 'x' } }).catch(() => undefined);
  await commits.arrived();
  server.child.kill('SIGINT');
  server.child.kill('SIGINT');
  await until(() => server.output.some((line) => line.includes('"stopping"')));
  assert.equal(server.child.exitCode, null, 'twins are one');
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  assert.equal(await server.end('SIGINT'), 130);
  await commits.release();
  await running;
});
