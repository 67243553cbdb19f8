import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type postgres from 'postgres';
import { type Called, call, type ServerProcess } from '../helpers/server.ts';
import { holdTransaction, testSql, until } from '../helpers/sql.ts';

/** A server of any kind with one keyed POST, whose effect is a row with a number of the test's in it. */
export type Target = {
  readonly databaseUrl: string;
  readonly path: string;
  /** Table and column of the effects, and the table of the keys. */
  readonly effects: string;
  readonly number: string;
  readonly keys: string;
  /** A body that is accepted. */
  body(number: number): Record<string, unknown>;
  authorization(tenant: 'acme' | 'globex'): Promise<string>;
  /** Work and completion are one statement, which locks the key's row while it waits: nobody can take over meanwhile. */
  readonly isOneStatement?: true;
  /** Starts one more process. */
  start(t: TestContext): Promise<ServerProcess>;
};

/** Names the lock that whoever is told to wait waits for; any number. */
const gate = 4_712;

/** The cases of the key that every server must pass, one subtest each. */
export async function passKeyCases(t: TestContext, target: Target): Promise<void> {
  const sql = testSql(t, target.databaseUrl);
  await direct(sql, target);
  let server = await target.start(t);
  let last = 0;
  const next = () => (last += 1);

  const post = async (key: string, body: unknown, tenant: 'acme' | 'globex' = 'acme', at = server): Promise<Called> =>
    await call(at.url, `POST ${target.path}`, {
      token: null,
      key,
      body,
      headers: { authorization: await target.authorization(tenant) },
    });
  const effects = async (number: number) =>
    (await sql`select 1 from ${sql(target.effects)} where ${sql(target.number)}::text = ${String(number)}`).length;
  const tell = (what: string, act: 'fail' | 'wait') => sql`insert into suite_play values (${what}, ${act})`;
  const untell = () => sql`truncate suite_play`;
  const closed = () => holdTransaction(t, target.databaseUrl, (held) => held`select pg_advisory_xact_lock(${gate})`);
  const arrived = (count: number) => until(async () => (await waiting(sql)).length === count);
  const age = (key: string) => sql`update ${sql(target.keys)} set lease_until = now() where key = ${key}`;

  await t.test('first is 201, and a copy gets its bytes again', async () => {
    const n = next();
    const first = await post('first', target.body(n));
    assert.equal(first.status, 201, first.text);
    assert.equal(first.headers.get('idempotent-replayed'), 'false');
    const again = await post('first', target.body(n));
    assert.equal(again.status, 201);
    assert.equal(again.text, first.text);
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    for (const name of ['location', 'content-type', 'idempotency-expires']) {
      assert.equal(again.headers.get(name), first.headers.get(name), name);
      assert.notEqual(first.headers.get(name), null, name);
    }
    assert.equal(await effects(n), 1);
  });

  await t.test('another body under the key is 409 and says what differs', async () => {
    const n = next();
    assert.equal((await post('other', target.body(n))).status, 201);
    assertReused(await post('other', target.body(next())));
    assert.equal(await effects(n), 1);
  });

  await t.test('no key is 400', async () => {
    const refused = await post('', target.body(next()));
    assert.deepEqual([refused.status, refused.json.code], [400, 'idempotency_key_invalid']);
    const headers = { authorization: await target.authorization('acme') };
    const without = await call(server.url, `POST ${target.path}`, { token: null, body: target.body(next()), headers });
    assert.deepEqual([without.status, without.json.code], [400, 'idempotency_key_required']);
  });

  await t.test('a copy is told at once while the first is in its COMMIT', async () => {
    const n = next();
    await tell('running', 'wait');
    const held = await closed();
    const first = post('running', target.body(n));
    await arrived(1);
    const copy = await post('running', target.body(n));
    assert.deepEqual([copy.status, copy.json.code, copy.json.key_action], [409, 'request_in_progress', 'reuse']);
    assert.ok(Number(copy.headers.get('retry-after')) >= 1);
    assertReused(await post('running', target.body(next())));
    assert.equal((await waiting(sql)).length, 1, 'the first is still there');
    await held.release();
    assert.equal((await first).status, 201);
    assert.equal((await post('running', target.body(n))).headers.get('idempotent-replayed'), 'true');
    assert.equal(await effects(n), 1);
    await untell();
  });

  await t.test('twenty copies at once have one effect', async () => {
    const n = next();
    const answers = await Promise.all(Array.from({ length: 20 }, () => post('copies', target.body(n))));
    assert.deepEqual(
      answers.map(({ status }) => status).filter((status) => status !== 201 && status !== 409),
      [],
    );
    assert.equal(new Set(answers.filter(({ status }) => status === 201).map(({ text }) => text)).size, 1);
    assert.equal(await effects(n), 1);
  });

  await t.test('a refused body frees the key', async () => {
    const n = next();
    const refused = await post('corrected', { ...target.body(n), nonsense: true });
    assert.deepEqual([refused.status, refused.json.code], [422, 'invalid_body'], refused.text);
    assert.equal((await sql`select 1 from ${sql(target.keys)} where key = 'corrected'`).length, 0);
    assert.equal((await post('corrected', target.body(n))).status, 201);
    assert.equal(await effects(n), 1);
  });

  await t.test('a failure keeps the key bound to its request, and the next try runs', async () => {
    const n = next();
    await tell(String(n), 'fail');
    assert.equal((await post('failed', target.body(n))).status, 500);
    assert.equal(await effects(n), 0);
    assertReused(await post('failed', target.body(next())));
    await untell();
    const second = await post('failed', target.body(n));
    assert.deepEqual([second.status, second.headers.get('idempotent-replayed')], [201, 'false']);
    assert.equal(await effects(n), 1);
  });

  await t.test('a session that Postgres ends in the middle of the work fails that try alone', async () => {
    const n = next();
    await tell(String(n), 'wait');
    const held = await closed();
    const cut = post('cut', target.body(n));
    await arrived(1);
    for (const { pid } of await waiting(sql)) await sql`select pg_terminate_backend(${pid})`;
    const { status } = await cut;
    assert.ok(status === 500 || status === 503, String(status));
    await held.release();
    await untell();
    assert.equal(await effects(n), 0);
    // The row is let go as soon as Postgres has noticed.
    await until(async () => (await post('cut', target.body(n))).status === 201);
    assert.equal(await effects(n), 1);
  });

  await t.test('the same key of another tenant is another key', async () => {
    const [mine, theirs] = [next(), next()];
    assert.equal((await post('shared', target.body(mine))).status, 201);
    const other = await post('shared', target.body(theirs), 'globex');
    assert.deepEqual([other.status, other.headers.get('idempotent-replayed')], [201, 'false']);
    assert.deepEqual([await effects(mine), await effects(theirs)], [1, 1]);
  });

  const lateOwner = async () => {
    const n = next();
    await tell(String(n), 'wait');
    const held = await closed();
    const late = post('late', target.body(n));
    await arrived(1);
    await age('late');
    const second = post('late', target.body(n));
    await arrived(2);
    await held.release();
    const answers = await Promise.all([late, second]);
    assert.ok(answers.some(({ status }) => status === 201));
    for (const { status, json } of answers) {
      if (status !== 201) assert.deepEqual([status, json.code], [409, 'request_in_progress']);
    }
    assert.equal(await effects(n), 1);
    await untell();
  };
  if (!target.isOneStatement) await t.test('a late owner is refused whole when another has taken over', lateOwner);

  await t.test('after an owner was killed the next try runs, in another process', async () => {
    const n = next();
    await tell('killed', 'wait');
    const held = await closed();
    const lost = post('killed', target.body(n)).catch(() => undefined);
    await arrived(1);
    await server.end('SIGKILL');
    await lost;
    for (const { pid } of await waiting(sql)) await sql`select pg_terminate_backend(${pid})`;
    await untell();
    await held.release();
    server = await target.start(t);
    const early = await post('killed', target.body(n));
    assert.deepEqual([early.status, early.json.code], [409, 'request_in_progress']);
    await age('killed');
    const second = await post('killed', target.body(n));
    assert.deepEqual([second.status, second.headers.get('idempotent-replayed')], [201, 'false']);
    assert.equal(await effects(n), 1);
    const [row] = await sql`select attempt from ${sql(target.keys)} where key = 'killed'`;
    assert.equal(row?.attempt, 2);
  });

  await t.test('SIGTERM ends the process by itself', async () => {
    assert.equal(await server.end('SIGTERM'), 0);
  });
}

function assertReused(called: Called): void {
  assert.deepEqual([called.status, called.json?.code], [409, 'idempotency_key_reused'], called.text);
  assert.deepEqual([called.json.differs, called.json.key_action], [['body'], 'rotate']);
  assert.equal(called.headers.get('x-should-retry'), 'false');
}

/** Who waits at the gate. */
function waiting(sql: postgres.Sql) {
  return sql<{ pid: number }[]>`
    select pid from pg_locks where locktype = 'advisory' and objid = ${gate} and not granted
      and database = (select oid from pg_database where datname = current_database())`;
}

/** Lets the suite say what happens inside a server's transaction: at an effect, by its number, and in COMMIT, by the key. */
async function direct(sql: postgres.Sql, { effects, number, keys }: Target): Promise<void> {
  await sql.unsafe(`
    create table suite_play (what text not null, act text not null);
    create function suite_act(asked text) returns void language plpgsql as $$
    begin
      case (select act from suite_play where what = asked)
        when 'fail' then raise exception 'the suite says so';
        when 'wait' then perform pg_advisory_xact_lock_shared(${gate});
        else null;
      end case;
    end $$;
    create function suite_effect() returns trigger language plpgsql as
      $$ begin perform suite_act(new.${number}::text); return new; end $$;
    create function suite_commit() returns trigger language plpgsql as
      $$ begin perform suite_act(new.key); return null; end $$;
    create trigger suite_effect before insert on ${effects} for each row execute function suite_effect();
    create constraint trigger suite_commit after update on ${keys} deferrable initially deferred
      for each row when (new.state = 'done') execute function suite_commit();`);
}
