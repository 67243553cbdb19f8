import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql as drizzleSql } from 'drizzle-orm';
import { pgTable, text, timestamp } from 'drizzle-orm/pg-core';
import postgres from 'postgres';
import { type Database, type DatabaseOptions, DatabaseUnavailable, openDatabase } from '../../src/db/pool.ts';
import { sqlstateOf, UNIQUE_VIOLATION } from '../../src/db/sqlstate.ts';
import { createTestDatabase, type TestDatabase } from '../helpers/database.ts';

const words = pgTable('words', {
  word: text('word').primaryKey(),
  seen: timestamp('seen', { withTimezone: true }),
});

let database: TestDatabase;
let admin: postgres.Sql;
const opened: Database[] = [];

before(async () => {
  database = await createTestDatabase();
  admin = postgres(database.url, { max: 2, onnotice: () => {} });
  await admin`create table words (word text primary key, seen timestamptz)`;
});
beforeEach(() => admin`truncate words`);
afterEach(() => Promise.all(opened.splice(0).map((db) => db.close(0))));
after(async () => {
  await admin.end();
  await database.drop();
});

function open(options: Partial<DatabaseOptions> = {}): Database {
  const db = openDatabase({ url: database.url, max: 4, prepare: true, queryTimeoutMs: 5_000, ...options });
  opened.push(db);
  return db;
}

const stored = async () => (await admin`select word from words order by word`).map((row) => row.word as string);

/** What it rejects with, which must be DatabaseUnavailable. */
async function unavailability(work: Promise<unknown>): Promise<DatabaseUnavailable> {
  const error = await work.then(
    () => assert.fail('it resolved'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof DatabaseUnavailable, String(error));
  return error;
}

/** Holds the row lock of a word until it is told to let go. */
async function holdWord(word: string): Promise<() => Promise<void>> {
  await admin`insert into words (word) values (${word}) on conflict do nothing`;
  let letGo = () => {};
  const told = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  let isHeld = () => {};
  const held = new Promise<void>((resolve) => {
    isHeld = resolve;
  });
  const transaction = admin.begin(async (sql) => {
    await sql`select 1 from words where word = ${word} for update`;
    isHeld();
    await told;
  });
  await held;
  return async () => {
    letGo();
    await transaction;
  };
}

/** Sessions of the pool in this database, and what they wait for. */
const sessions = () => admin<{ state: string; query: string }[]>`
  select state, query from pg_stat_activity where datname = current_database() and application_name = 'retry-safe'`;

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(10);
}

describe('values', () => {
  test('an int8 is a number while that is exact, else a bigint', async () => {
    const [row] = await open().query(
      (sql) => sql`select 9007199254740991::int8 as a, 9007199254740993::int8 as b, (-5)::int8 as c`,
    );
    assert.deepEqual({ ...row }, { a: 9007199254740991, b: 9007199254740993n, c: -5 });
  });

  test('a timestamptz is a Date, a date and a timestamp stay text, bytea is bytes, jsonb is a value', async () => {
    const bytes = Buffer.from([0, 255, 128]);
    const [row] = await open().query(
      (sql) => sql`select ${new Date(1e12)}::timestamptz as instant, '2025-01-02'::date as day,
        '2025-01-02 03:04:05'::timestamp as local, ${bytes}::bytea as bytes, ${sql.json({ a: [1] })}::jsonb as value`,
    );
    assert.deepEqual(
      { ...row },
      { instant: new Date(1e12), day: '2025-01-02', local: '2025-01-02 03:04:05', bytes, value: { a: [1] } },
    );
  });

  test('text as a timestamptz parameter keeps its microseconds', async () => {
    const [row] = await open().query((sql) => sql`select ${'2025-01-02T03:04:05.123456Z'}::timestamptz::text as t`);
    assert.equal(row?.t, '2025-01-02 03:04:05.123456+00');
  });

  test('drizzle and raw statements of one transaction see the same values', async () => {
    const seen = new Date('2025-01-02T03:04:05.678Z');
    const found = await open().transaction(async ({ sql, orm }) => {
      await orm.insert(words).values({ word: 'both', seen });
      return { raw: await sql`select seen from words`, orm: await orm.select().from(words) };
    });
    assert.deepEqual(found.raw[0]?.seen, seen);
    assert.deepEqual(found.orm, [{ word: 'both', seen }]);
  });
});

describe('transactions', () => {
  test('what a transaction wrote is there after it and was not before', async () => {
    let during: string[] = [];
    await open().transaction(async ({ sql }) => {
      await sql`insert into words values ('kept')`;
      during = await stored();
    });
    assert.deepEqual([during, await stored()], [[], ['kept']]);
  });

  test('a callback that throws rolls back and its own error is what the caller gets', async () => {
    const db = open({ max: 1 });
    class Refused extends Error {}
    await assert.rejects(
      db.transaction(async ({ sql }) => {
        await sql`insert into words values ('undone')`;
        throw new Refused();
      }),
      Refused,
    );
    assert.deepEqual(await stored(), []);
    assert.equal((await db.query((sql) => sql`select pg_current_xact_id_if_assigned() as x`))[0]?.x, null);
  });

  test('an error that the callback caught still fails the whole transaction, with that error', async () => {
    const work = open().transaction(async ({ sql }) => {
      await sql`insert into words values ('first')`;
      await sql`insert into words values ('first')`.catch(() => {});
    });
    await assert.rejects(work, (error) => sqlstateOf(error) === UNIQUE_VIOLATION);
    assert.deepEqual(await stored(), []);
  });

  test('after the first error no further statement of the transaction is run', async () => {
    const db = open();
    await assert.rejects(
      db.transaction(async ({ sql, orm }) => {
        // Fails in the driver: Postgres does not hear of it and would run what follows.
        await sql`select ${undefined as never}`.catch(() => {});
        await assert.rejects(async () => sql`insert into words values ('raw')`, /UNDEFINED_VALUE/);
        await assert.rejects(async () => orm.insert(words).values({ word: 'orm' }));
      }),
      /UNDEFINED_VALUE/,
    );
    assert.deepEqual(await stored(), []);
  });

  test('a callback may turn a unique violation into its own error', async () => {
    class Taken extends Error {}
    const work = open().transaction(async ({ orm }) => {
      await orm.insert(words).values({ word: 'one' });
      await orm
        .insert(words)
        .values({ word: 'one' })
        .catch((error: unknown) => {
          throw sqlstateOf(error) === UNIQUE_VIOLATION ? new Taken() : error;
        });
    });
    await assert.rejects(work, Taken);
  });

  test('a statement that the callback left behind is in the transaction, and its failure undoes it', async () => {
    const db = open();
    await db.transaction(async ({ sql }) => {
      void sql`insert into words values ('behind')`.execute();
      await sql`select 1`;
    });
    assert.deepEqual(await stored(), ['behind']);
    const failing = db.transaction(async ({ sql }) => {
      await sql`insert into words values ('lost')`;
      void sql`insert into words values ('behind')`.execute();
      await sql`select 1`.catch(() => {});
    });
    await assert.rejects(failing, (error) => sqlstateOf(error) === UNIQUE_VIOLATION);
    assert.deepEqual(await stored(), ['behind']);
  });

  test('a last statement that nobody waits for and that fails after COMMIT was sent fails the transaction', async () => {
    await admin`insert into words values ('there')`;
    const work = open().transaction(async ({ sql }) => {
      await sql`insert into words values ('lost')`;
      void sql`insert into words values ('there')`.execute();
    });
    await assert.rejects(work, (error) => sqlstateOf(error) === UNIQUE_VIOLATION);
    assert.deepEqual(await stored(), ['there']);
  });

  test('a statement after the end of its transaction is rejected and not run', async () => {
    const db = open({ max: 1 });
    const leaked = await db.transaction(async (tx) => ({ tx }));
    await assert.rejects(async () => leaked.tx.sql`insert into words values ('late')`, /over/);
    await db.transaction(async () => {
      await assert.rejects(async () => leaked.tx.orm.insert(words).values({ word: 'late' }));
    });
    assert.deepEqual(await stored(), []);
  });

  test('cursors, savepoints and nested begin are refused', async () => {
    const db = open();
    await assert.rejects(
      db.transaction(async ({ sql }) => sql`select 1`.cursor(1, () => {})),
      /cursor/,
    );
    for (const name of ['begin', 'reserve', 'savepoint'] as const) {
      await assert.rejects(
        db.transaction(async ({ sql }) => (sql as unknown as Record<string, () => unknown>)[name]?.()),
        /not inside a transaction/,
      );
    }
  });

  test('a constraint that is checked at COMMIT fails the transaction with its own code', async () => {
    await admin`create table once (n int unique deferrable initially deferred)`;
    const work = open().transaction(async ({ sql }) => sql`insert into once values (1), (1)`);
    await assert.rejects(
      work,
      (error) => sqlstateOf(error) === UNIQUE_VIOLATION && !(error instanceof DatabaseUnavailable),
    );
  });

  test('BEGIN travels with the first statement', async () => {
    const db = open({ max: 1 });
    const relay = await startRelay(database.url);
    const through = open({ max: 1, url: relay.url });
    const once = () => through.transaction(async ({ sql }) => sql`select 1 as one`);
    await once();
    await once();
    const before = relay.requests();
    await once();
    assert.equal(relay.requests() - before, 2, 'begin with select, then commit');
    await relay.close();
    await db.close(0);
  });
});

describe('deadlines', () => {
  test('a statement beyond the deadline is unavailable and its connection is replaced', async () => {
    const db = open({ max: 1, queryTimeoutMs: 300 });
    const error = await unavailability(db.query((sql) => sql`select pg_sleep(30)`));
    assert.deepEqual([error.reason, error.sent, error.commitUnknown], ['deadline', true, true]);
    const began = performance.now();
    assert.equal((await db.query((sql) => sql`select 1 as one`))[0]?.one, 1);
    await until(async () => (await sessions()).every((session) => !session.query.includes('pg_sleep')));
    assert.ok(performance.now() - began < 15_000, 'the server was asked to stop and does not sleep on');
  });

  test('a transaction that waits for a lock beyond the deadline never commits, also when the lock is let go', async () => {
    const db = open({ max: 1, queryTimeoutMs: 300 });
    const letGo = await holdWord('locked');
    const error = await unavailability(
      db.transaction(async ({ sql }) => {
        await sql`insert into words values ('in vain')`;
        await sql`update words set seen = now() where word = 'locked'`;
      }),
    );
    assert.deepEqual([error.reason, error.commitUnknown], ['deadline', false]);
    await letGo();
    await until(async () => (await sessions()).every((session) => session.state === 'idle'));
    assert.deepEqual(await stored(), ['locked']);
  });

  test('the deadline ends a transaction whose callback waits for something else, and later statements of it are rejected', async () => {
    const db = open({ max: 1, queryTimeoutMs: 200 });
    let later: Promise<unknown> = Promise.resolve();
    const work = db.transaction(async ({ sql }) => {
      await sql`insert into words values ('slow')`;
      later = sleep(300).then(() => sql`insert into words values ('slower')`);
      later.catch(() => {});
      await later;
    });
    assert.equal((await unavailability(work)).reason, 'deadline');
    await assert.rejects(later);
    assert.deepEqual(await stored(), []);
  });

  test('whoever waits for a connection beyond the deadline is refused and never executed', async () => {
    const db = open({ max: 1, queryTimeoutMs: 500 });
    const line = Array.from({ length: 12 }, () => db.query((sql) => sql`select pg_sleep(0.1)`).catch(() => {}));
    const error = await unavailability(db.query((sql) => sql`insert into words values ('late')`));
    assert.deepEqual([error.reason, error.sent, error.commitUnknown], ['wait', false, false]);
    await Promise.all(line);
    await db.query((sql) => sql`select 1`);
    assert.deepEqual(await stored(), []);
  });

  test('connections are lent in the order of asking', async () => {
    const db = open({ max: 1 });
    const order: number[] = [];
    await Promise.all([1, 2, 3, 4, 5].map((n) => db.query((sql) => sql`select 1`).then(() => order.push(n))));
    assert.deepEqual(order, [1, 2, 3, 4, 5]);
  });

  test('a server that takes connections and never answers is unavailable at the deadline', async () => {
    const silent = createServer(() => {});
    silent.listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as { port: number };
    const db = open({ url: `postgres://u:p@127.0.0.1:${port}/d`, queryTimeoutMs: 200 });
    const error = await unavailability(db.query((sql) => sql`select 1`));
    assert.deepEqual([error.reason, error.sent, error.commitUnknown], ['deadline', false, false]);
    await db.close(0);
    silent.close();
  });
});

describe('lost connections', () => {
  test('no server at the address: unavailable at once, nothing sent', async () => {
    const db = open({ url: 'postgres://u:p@127.0.0.1:1/d' });
    for (const work of [
      () => db.query((sql) => sql`select 1`),
      () => db.transaction(async ({ sql }) => sql`select 1`),
    ]) {
      const error = await unavailability(work());
      assert.deepEqual([error.reason, error.sent, error.commitUnknown], ['connect', false, false]);
    }
    assert.equal(db.stats().open, 0);
  });

  test("a refused log-in is unavailable and keeps the server's reason", async () => {
    const url = new URL(database.url);
    url.password = 'wrong';
    const error = await unavailability(open({ url: url.href }).query((sql) => sql`select 1`));
    assert.deepEqual([error.reason, sqlstateOf(error)], ['connect', '28P01']);
  });

  test('of several hosts in the URL the next is tried after one that fails', async () => {
    const { host, pathname, username, password } = new URL(database.url);
    const db = open({ url: `postgres://${username}:${password}@127.0.0.1:1,${host}${pathname}` });
    await unavailability(db.query((sql) => sql`select 1`));
    assert.equal((await db.query((sql) => sql`select 1 as one`))[0]?.one, 1);
  });

  test('a session killed while idle costs nobody anything', async () => {
    const db = open({ max: 1 });
    const pid = async () => (await db.query((sql) => sql`select pg_backend_pid() as pid`))[0]?.pid as number;
    const first = await pid();
    await admin`select pg_terminate_backend(${first})`;
    await until(async () => db.stats().open === 0);
    assert.notEqual(await pid(), first);
  });

  test('a session killed inside a transaction loses all of it, and nothing of it runs on another', async () => {
    const db = open({ max: 2 });
    const work = db.transaction(async ({ sql, orm }) => {
      await sql`insert into words values ('before')`;
      const [row] = await sql`select pg_backend_pid() as pid`;
      await admin`select pg_terminate_backend(${row?.pid as number})`;
      await sql`insert into words values ('after')`.catch(() => {});
      await sleep(20);
      await sql`insert into words values ('raw')`.catch(() => {});
      await orm
        .insert(words)
        .values({ word: 'orm' })
        .catch(() => {});
    });
    const error = await unavailability(work);
    assert.deepEqual([error.reason, error.sent, error.commitUnknown], ['lost', true, false]);
    await db.query((sql) => sql`select 1`);
    assert.deepEqual(await stored(), []);
  });

  test('statements that wait in the driver when their session is killed do not run on another', async () => {
    const db = open({ max: 2 });
    const work = db.transaction(async ({ sql }) => {
      const [row] = await sql`select pg_backend_pid() as pid`;
      // The first has parameters that Postgres must describe: the driver holds the others back until then.
      const statements = [
        sql`select pg_sleep(${30}::int)`,
        sql`insert into words values ('second')`,
        sql`insert into words values ('third')`,
      ];
      const all = Promise.allSettled(statements);
      await admin`select pg_terminate_backend(${row?.pid as number})`;
      await all;
    });
    assert.equal((await unavailability(work)).reason, 'lost');
    await sleep(50);
    assert.deepEqual(await stored(), []);
  });

  test('idle_in_transaction_session_timeout fails the whole transaction', async () => {
    const db = open({ max: 2 });
    const work = db.transaction(async ({ sql }) => {
      await sql`set local idle_in_transaction_session_timeout = 50`;
      await sql`insert into words values ('before')`;
      await sleep(200);
      await sql`insert into words values ('after')`;
    });
    assert.equal((await unavailability(work)).reason, 'lost');
    assert.deepEqual(await stored(), []);
  });

  test('a COMMIT whose answer is lost is unknown', async () => {
    const relay = await startRelay(database.url);
    const db = open({ url: relay.url, max: 1 });
    const work = db.transaction(async ({ sql }) => {
      await sql`insert into words values ('perhaps')`;
      // From here on nothing comes back, and the connection breaks when the next request arrives.
      relay.swallowAnswers();
    });
    const error = await unavailability(work);
    assert.deepEqual([error.reason, error.sent, error.commitUnknown], ['lost', true, true]);
    await until(async () => (await stored()).length === 1);
    await relay.close();
  });

  test('a statement that the server cancels is unavailable, and its connection stays', async () => {
    const db = open({ max: 1 });
    const pid = (await db.query((sql) => sql`select pg_backend_pid() as pid`))[0]?.pid as number;
    const work = unavailability(db.transaction(async ({ sql }) => sql`select pg_sleep(30)`));
    await until(async () => (await sessions()).some((session) => session.query.includes('pg_sleep')));
    await admin`select pg_cancel_backend(${pid})`;
    assert.deepEqual([(await work).reason, (await work).commitUnknown], ['refused', false]);
    assert.equal((await db.query((sql) => sql`select pg_backend_pid() as pid`))[0]?.pid, pid);
  });

  test("an error of the statement builder is the caller's and costs no connection", async () => {
    const db = open({ max: 1 });
    await db.query((sql) => sql`select 1`);
    await assert.rejects(
      db.query(() => {
        throw new RangeError('mine');
      }),
      RangeError,
    );
    await assert.rejects(
      db.query((sql) => sql`select ${undefined as never}`),
      /UNDEFINED_VALUE/,
    );
    assert.equal((await db.query((sql) => sql`select 1 as one`))[0]?.one, 1);
    assert.equal(db.stats().opened, 1);
  });
});

describe('the pool as a whole', () => {
  test('40 statements at once never use more connections than allowed, and the counts say so', async () => {
    const db = open({ max: 3 });
    const work = Promise.all(Array.from({ length: 40 }, () => db.query((sql) => sql`select pg_sleep(0.005)`)));
    const during = db.stats();
    assert.deepEqual([during.inUse, during.waiting, during.open], [3, 37, 3]);
    assert.equal((await sessions()).length <= 3, true);
    await work;
    const { max, open: isOpen, inUse, waiting, served, opened, lost, waitedMs, longestWaitMs } = db.stats();
    assert.deepEqual(
      { max, isOpen, inUse, waiting, served, opened, lost, longestWaitMs },
      {
        max: 3,
        isOpen: 3,
        inUse: 0,
        waiting: 0,
        served: 40,
        opened: 3,
        lost: 0,
        longestWaitMs: 0,
      },
    );
    assert.ok(waitedMs > 100);
  });

  test('close refuses newcomers and those who wait, lets the running one end, and leaves no session', async () => {
    const db = open({ max: 1 });
    const running = db.query((sql) => sql`select pg_sleep(0.1), 'done' as word`);
    const waiting = unavailability(db.query((sql) => sql`select 1`));
    const closed = db.close(5_000);
    assert.equal((await waiting).reason, 'closed');
    assert.equal((await unavailability(db.query((sql) => sql`select 1`))).reason, 'closed');
    assert.equal((await running)[0]?.word, 'done');
    await closed;
    assert.equal(db.stats().open, 0);
  });

  test('close cuts what runs longer than the grace', async () => {
    const db = open({ max: 1 });
    const running = unavailability(db.query((sql) => sql`select pg_sleep(30)`));
    await until(async () => db.stats().inUse === 1);
    const began = performance.now();
    await db.close(100);
    assert.ok(performance.now() - began < 2_000);
    assert.equal((await running).reason, 'closed');
  });

  test('without prepared statements none is kept in the session, and parameters still work', async () => {
    const db = open({ max: 1, prepare: false });
    const [row] = await db.query((sql) => sql`select ${7}::int as n`);
    const found = await db.transaction(async ({ sql, orm }) => {
      await orm.execute(drizzleSql`select ${1}::int`);
      return sql`select count(*) as n from pg_prepared_statements`;
    });
    assert.deepEqual([row?.n, found[0]?.n], [7, 0]);
  });

  test('drizzle statements of a transaction are prepared once', async () => {
    const db = open({ max: 1 });
    const kept = () =>
      db.transaction(async ({ sql, orm }) => {
        await orm.select().from(words).where(drizzleSql`word = ${'x'}`);
        return (await sql`select count(*) as n from pg_prepared_statements where statement like ${'%from "words"%'}`)[0]
          ?.n;
      });
    assert.deepEqual([await kept(), await kept()], [1, 1]);
  });
});

/** A relay before Postgres that counts what the client sends and can keep answers back. */
async function startRelay(target: string) {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let requests = 0;
  let isSwallowing = false;
  const relay = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {});
    }
    client.on('data', (chunk) => {
      requests += 1;
      upstream.write(chunk);
    });
    upstream.on('data', (chunk) => {
      if (isSwallowing) client.destroy();
      else client.write(chunk);
    });
    client.on('close', () => upstream.end());
    upstream.on('close', () => client.destroy());
  });
  relay.listen(0, '127.0.0.1');
  await once(relay, 'listening');
  const url = new URL(target);
  url.port = String((relay.address() as { port: number }).port);
  return {
    url: url.href,
    requests: () => requests,
    swallowAnswers: () => {
      isSwallowing = true;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      relay.close();
      await once(relay, 'close');
    },
  };
}
