import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres';
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js';
import pg from 'pg';
import postgres from 'postgres';
import { migrateKeys } from '../../src/db/migrate.ts';
import type { Driver } from '../../src/guest/drivers.ts';
import { createKeys, type KeyedCall, type Keys } from '../../src/guest/keys.ts';
import type { Owner } from '../../src/guest/owner.ts';
import { problem } from '../../src/protocol/errors.ts';
import { atEnd } from '../helpers/cleanup.ts';
import { emptyDatabase } from '../helpers/database.ts';
import { testSql } from '../helpers/sql.ts';
import { createDoor } from '../helpers/stage.ts';

/** A driver of an app: its pool, one transaction on it, and a statement of the work inside. */
type App = {
  readonly pool: Driver;
  transact<T>(work: (transaction: Driver, insert: (n: number) => Promise<unknown>) => Promise<T>): Promise<T>;
};

const insertText = (n: number) => `insert into effects values (${n})`;

function nodePostgres(t: TestContext, url: string): { app: App; pool: pg.Pool } {
  const pool = new pg.Pool({ connectionString: url, max: 5 });
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  atEnd(t, () => pool.end());
  const transact: App['transact'] = async (work) => {
    const client = await pool.connect();
    try {
      await client.query('begin');
      const result = await work(client, (n) => client.query(insertText(n)));
      await client.query('commit');
      return result;
    } catch (error) {
      await client.query('rollback');
      throw error;
    } finally {
      client.release();
    }
  };
  return { app: { pool, transact }, pool };
}

function postgresJs(t: TestContext, url: string): { app: App; sql: postgres.Sql } {
  const sql = postgres(url, { max: 5, onnotice: () => {} });
  atEnd(t, () => sql.end({ timeout: 1 }));
  const transact = (work: (transaction: Driver, insert: (n: number) => Promise<unknown>) => Promise<unknown>) =>
    sql.begin((tx) => work(tx, (n) => tx.unsafe(insertText(n))));
  return { app: { pool: sql, transact: transact as App['transact'] }, sql };
}

const apps: Readonly<Record<string, (t: TestContext, url: string) => App>> = {
  'node-postgres': (t, url) => nodePostgres(t, url).app,
  'postgres.js': (t, url) => postgresJs(t, url).app,
  'drizzle over node-postgres': (t, url) => {
    const db = drizzlePg(nodePostgres(t, url).pool);
    return { pool: db, transact: (work) => db.transaction((tx) => work(tx, (n) => tx.execute(insertText(n)))) };
  },
  'drizzle over postgres.js': (t, url) => {
    const db = drizzlePostgresJs(postgresJs(t, url).sql);
    return { pool: db, transact: (work) => db.transaction((tx) => work(tx, (n) => tx.execute(insertText(n)))) };
  },
  'a function': (t, url) => {
    const { app, pool } = nodePostgres(t, url);
    return { ...app, pool: async (text, values) => (await pool.query(text, [...values])).rows };
  },
};

async function setUp(t: TestContext, driver = 'node-postgres') {
  const database = await emptyDatabase();
  atEnd(t, () => database.drop());
  await migrateKeys(database.url);
  const sql = testSql(t, database.url);
  await sql`create table effects (n int)`;
  const app = apps[driver]?.(t, database.url) as App;
  const faults: unknown[] = [];
  const keys = createKeys({ pool: app.pool, onError: (_message, error) => faults.push(error) });
  atEnd(t, () => keys.stop());
  const effects = async () => (await sql`select n from effects order by n`).map(({ n }) => n as number);
  return { app, keys, sql, effects, faults, url: database.url };
}

const request = (change: Partial<KeyedCall> & { key?: string } = {}): KeyedCall => ({
  tenant: 'acme',
  method: 'POST',
  url: '/effects',
  headers: { 'idempotency-key': [change.key ?? 'k'], 'content-type': ['application/json'] },
  body: Buffer.from('{"n":1}'),
  ...change,
});

/** The usual work: one effect, and its number as the answer. */
const effect =
  (app: App, n: number) =>
  ({ complete }: Owner) =>
    app.transact(async (transaction, insert) => {
      await insert(n);
      return await complete(transaction, { status: 201, headers: { Location: `/effects/${n}` }, body: { n } });
    });

const told = async (reply: ReturnType<Keys['handle']>) => {
  const { status, headers, body } = await reply;
  return { status, headers, json: body === null ? undefined : JSON.parse(Buffer.from(body).toString()) };
};

for (const name of Object.keys(apps)) {
  test(`through ${name} the work runs once and its answer is stored with it`, async (t) => {
    const { app, keys, effects } = await setUp(t, name);
    const first = await keys.handle(request(), effect(app, 1));
    assert.equal(first.status, 201);
    assert.equal(first.headers['Idempotent-Replayed'], 'false');
    const again = await keys.handle(request(), effect(app, 2));
    assert.deepEqual(again.body, first.body);
    assert.equal(again.headers.Location, '/effects/1');
    assert.equal(again.headers['Idempotent-Replayed'], 'true');
    assert.equal(again.headers['Idempotency-Expires'], first.headers['Idempotency-Expires']);
    assert.deepEqual(await effects(), [1]);
  });

  test(`through ${name} an answer is not stored without a transaction`, async (t) => {
    const { app, keys, effects, faults } = await setUp(t, name);
    const reply = await told(keys.handle(request(), ({ complete }) => complete(app.pool, { status: 201, body: {} })));
    assert.deepEqual([reply.status, reply.json.code], [500, 'internal']);
    assert.match(String(faults[0]), /needs the transaction/);
    assert.equal((await keys.lookUp('acme', 'k'))?.phase, 'released');
    assert.equal((await keys.handle(request(), effect(app, 1))).status, 201);
    assert.deepEqual(await effects(), [1]);
  });

  test(`through ${name} an answer may be stored without any other write`, async (t) => {
    const { app, keys } = await setUp(t, name);
    const nothing = ({ complete }: Owner) => app.transact((transaction) => complete(transaction, { status: 204 }));
    assert.equal((await keys.handle(request(), nothing)).status, 204);
    assert.equal((await keys.handle(request(), nothing)).headers['Idempotent-Replayed'], 'true');
  });
}

test('what the work throws rolls it back: a 4xx frees the key, anything else keeps it bound', async (t) => {
  const { app, keys, effects, faults } = await setUp(t);
  const failing = (error: Error) => () =>
    app.transact(async (_transaction, insert) => {
      await insert(1);
      throw error;
    });
  const refused = await told(keys.handle(request(), failing(problem('not_found'))));
  assert.deepEqual([refused.status, refused.json.key_action], [404, 'reuse']);
  assert.equal(await keys.lookUp('acme', 'k'), undefined);
  assert.equal(faults.length, 0);
  const cause = new Error('of the test');
  assert.equal((await keys.handle(request(), failing(cause))).status, 500);
  assert.deepEqual(faults, [cause]);
  assert.equal((await keys.lookUp('acme', 'k'))?.phase, 'released');
  assert.deepEqual(await effects(), []);
});

test('work that stores no answer is a defect, and its key is free for the next try', async (t) => {
  const { app, keys, faults } = await setUp(t);
  const reply = await keys.handle(request(), async () => ({ status: 201, headers: {}, body: null }));
  assert.equal(reply.status, 500);
  assert.match(String(faults[0]), /complete its key/);
  assert.equal((await keys.handle(request(), effect(app, 1))).status, 201);
});

test('the key, the preconditions and the body are judged before anything runs', async (t) => {
  const { keys, faults } = await setUp(t);
  const never = () => assert.fail('it ran');
  const code = async (change: Partial<KeyedCall>) => (await told(keys.handle(request(change), never))).json.code;
  assert.equal(await code({ headers: {} }), 'idempotency_key_required');
  assert.equal(await code({ headers: { 'idempotency-key': ['a', 'b'] } }), 'idempotency_key_invalid');
  assert.equal(await code({ headers: { 'idempotency-key': ['a'], 'if-match': ['v1'] } }), 'precondition_invalid');
  assert.equal(await code({ body: Buffer.from('{"n":1,"n":2}') }), 'invalid_json');
  assert.equal(faults.length, 0);
  assert.equal(await code({ body: { n: 1 } as never }), 'internal');
  assert.match(String(faults[0]), /takes the bytes/);
});

test('the owner is given the body, the conditions and who it is', async (t) => {
  const { app, keys } = await setUp(t);
  const headers = new Headers({ 'Idempotency-Key': '"k-1"', 'If-Match': '"v1"', 'Content-Type': 'application/json' });
  let seen: Owner | undefined;
  await keys.handle(request({ headers }), (owner) => {
    seen = owner;
    return effect(app, 1)(owner);
  });
  assert.deepEqual([seen?.tenant, seen?.key, seen?.attempt, seen?.body], ['acme', 'k-1', 1, { n: 1 }]);
  assert.deepEqual(seen?.ifMatch, { kind: 'tags', tags: [{ opaque: 'v1', weak: false }] });
  assert.ok(seen.now instanceof Date && Math.abs(seen.now.getTime() - Date.now()) < 600_000);
});

test('method, path, query and body tell requests apart; the trace id comes back in the refusal', async (t) => {
  const { app, keys } = await setUp(t);
  await keys.handle(request({ url: '/effects?a=1&b=2' }), effect(app, 1));
  const traceparent = ['00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'];
  const headers = { ...(request().headers as NodeJS.Dict<string[]>), traceparent };
  const other = request({ url: '/other?b=3', method: 'PUT', body: Buffer.from('{"n":2}'), headers });
  const reply = await told(keys.handle(other, effect(app, 2)));
  assert.deepEqual([reply.status, reply.json.differs], [409, ['method', 'path', 'query', 'body']]);
  assert.equal(reply.json.trace_id, traceparent[0]?.split('-')[1]);
  const same = request({ url: '/effects?b=2&a=1', body: Buffer.from(' { "n" : 1 } ') });
  assert.equal((await keys.handle(same, effect(app, 3))).headers['Idempotent-Replayed'], 'true');
});

test('a parked copy gets the answer of the first when that is done', async (t) => {
  const { app, keys, effects } = await setUp(t);
  const door = createDoor();
  const first = keys.handle(request(), async (owner) => {
    await door.pass();
    return await effect(app, 1)(owner);
  });
  await door.arrived;
  assert.equal((await keys.handle(request(), effect(app, 2))).status, 409);
  const headers = { ...(request().headers as NodeJS.Dict<string[]>), prefer: ['wait=20'] };
  const parked = keys.handle(request({ headers }), effect(app, 3));
  await new Promise((resolve) => setImmediate(resolve));
  door.open();
  assert.equal((await first).status, 201);
  const reply = await parked;
  assert.deepEqual([reply.status, reply.headers['Preference-Applied']], [201, 'wait=20']);
  assert.deepEqual(await effects(), [1]);
});

test('stop aborts what still runs and gives its key back', async (t) => {
  const { app, keys, effects } = await setUp(t);
  const begun = createDoor();
  const running = told(
    keys.handle(request(), async ({ signal }) => {
      void begun.pass();
      return await new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      });
    }),
  );
  await begun.arrived;
  await keys.stop();
  const reply = await running;
  assert.deepEqual([reply.status, reply.json.code], [503, 'unavailable']);
  assert.equal((await keys.lookUp('acme', 'k'))?.phase, 'released');
  const successor = createKeys({ pool: app.pool, onError: () => {} });
  atEnd(t, () => successor.stop());
  assert.equal((await successor.handle(request(), effect(app, 1))).status, 201);
  assert.deepEqual(await effects(), [1]);
});

test('a session that is lost in the middle of the work leaves nothing, and the next try runs', async (t) => {
  const { app, keys, sql, effects } = await setUp(t);
  const reply = await told(
    keys.handle(request(), ({ complete }) =>
      app.transact(async (transaction, insert) => {
        await insert(1);
        await sql`
          select pg_terminate_backend(pid) from pg_stat_activity
          where state = 'idle in transaction' and datname = current_database()`;
        return await complete(transaction, { status: 201, body: {} });
      }),
    ),
  );
  assert.ok(reply.status >= 500, String(reply.status));
  const second = await keys.handle(request(), effect(app, 2));
  assert.deepEqual([second.status, second.headers['Idempotent-Replayed']], [201, 'false']);
  assert.deepEqual(await effects(), [2]);
});

test('without a database a keyed request is 503 and worth another try', async (t) => {
  const pool = new pg.Pool({ connectionString: 'postgres://nobody@127.0.0.1:1/none' });
  atEnd(t, () => pool.end());
  const keys = createKeys({ pool, onError: () => {} });
  atEnd(t, () => keys.stop());
  const reply = await told(keys.handle(request(), () => assert.fail('it ran')));
  assert.deepEqual([reply.status, reply.json.code, reply.json.key_action], [503, 'unavailable', 'reuse']);
  assert.ok(Number(reply.headers['Retry-After']) >= 1);
});
