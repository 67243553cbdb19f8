import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { after, before, test } from 'node:test';
import postgres from 'postgres';
import { bundleProgram } from '../../bench/stage/bundle.ts';
import { createTestDatabase, type TestDatabase, temporaryFolder } from '../helpers/database.ts';
import { type Called, type CallOptions, call } from '../helpers/server.ts';
import { until } from '../helpers/sql.ts';
import { serverEntry } from './chaos/build-world.ts';
import type { Window } from './chaos/failpoints.ts';
import { createSlot, type ServerSlot } from './chaos/server-slot.ts';
import { leaseMs, serverEnv } from './chaos/timing.ts';

/** Until a window has been gone through. Milliseconds. */
const limitMs = 10_000;

let folder: string;
let database: TestDatabase;
let sql: postgres.Sql;
let slot: ServerSlot;
let url = '';

before(async () => {
  folder = temporaryFolder();
  database = await createTestDatabase();
  sql = postgres(database.url, { max: 1, fetch_types: false });
  slot = createSlot(
    'server',
    await bundleProgram(serverEntry, folder),
    { ...serverEnv, DATABASE_URL: database.url },
    {
      onUrl: (next) => {
        url = next;
      },
      onLine: () => {},
      onCrash: (sentence) => assert.fail(sentence),
    },
  );
  await slot.start();
});
after(async () => {
  await slot.end('SIGKILL');
  await sql.end();
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});

/** Sends the request again and again to whoever is there, until it is done. */
async function sendUntilDone(line: string, options: CallOptions): Promise<Called> {
  let done: Called | undefined;
  await until(async () => {
    done = await call(url, line, options);
    return done.status < 300;
  });
  return done as Called;
}

/** Kills the server in the window that `send` leads it through, and starts it again. */
async function lose(window: Window, send: () => Promise<unknown>): Promise<void> {
  const hit = slot.arm(window, 'SIGKILL', limitMs);
  const lost = assert.rejects(send());
  assert.equal(await hit, true, 'the window was gone through');
  await lost;
  await slot.ended();
  await slot.start();
}

const orders = async (item: string) => (await sql`select 1 from orders where item = ${item}`).length;

for (const window of ['after_claim', 'before_commit', 'after_commit'] as const) {
  const isCommitted = window === 'after_commit';
  test(`an order whose server is killed ${window.replace('_', ' ')} is placed once, ${
    isCommitted ? 'and the retry gets its answer' : 'by the retry'
  }`, async () => {
    const options: CallOptions = { key: window, body: { cents: 1, item: window } };
    await lose(window, () => call(url, 'POST /v1/orders', options));
    assert.equal(await orders(window), isCommitted ? 1 : 0);
    const done = await sendUntilDone('POST /v1/orders', options);
    assert.equal(done.headers.get('idempotent-replayed'), String(isCommitted));
    assert.equal(await orders(window), 1);
    const { attempt } = (await call(url, `GET /v1/idempotency-keys/${window}`)).json;
    assert.equal(attempt, isCommitted ? 1 : 2);
  });
}

for (const window of ['after_model', 'in_renewal'] as const) {
  test(`a rewrite whose server is killed ${window.replace('_', ' ')} is written and charged once`, async () => {
    const id = window;
    const created = await sendUntilDone(`PUT /v1/docs/${id}`, {
      body: { title: 't', body: 'b' },
      headers: { 'if-none-match': '*' },
    });
    const headers = { 'if-match': created.headers.get('etag') as string };
    // Longer than a lease, so that it is renewed.
    const instruction = window === 'in_renewal' ? `[[slow:${leaseMs + 500}]]` : 'shorter';
    const options: CallOptions = { key: window, headers, body: { instruction } };
    await lose(window, () => call(url, `POST /v1/docs/${id}/rewrite`, options));
    const done = await sendUntilDone(`POST /v1/docs/${id}/rewrite`, options);
    assert.equal(done.json.version, 2);
    const entries = await sql<{ kind: string; n: number }[]>`
      select kind, count(*)::int as n from ledger where source_id like ${`${id}:%`} group by kind order by kind`;
    assert.deepEqual(
      entries.map(({ kind, n }) => [kind, n]),
      [
        ['charge', 1],
        ['hold', 2],
        ['release', 2],
      ],
      'the hold of the first owner was released, and only the second was charged',
    );
  });
}

test('a sweep whose server is killed in the middle is done by the next one, and touches nothing else', async () => {
  const kept: CallOptions = { key: 'kept', body: { cents: 1, item: 'kept' } };
  const first = await sendUntilDone('POST /v1/orders', kept);
  await lose('in_sweep', async () => {
    await sql`
      insert into idem (tenant, key, fingerprint, state, fencing_token, attempt, lease_until, created_at, expires_at,
        sweep_at, status, headers, body)
      select 'acme', 'old-' || n, '', 'done', gen_random_uuid(), 1, now(), now(), now(), now(), 200, '{}', 'x'
      from generate_series(1, 1500) n`;
    // Whoever asks now is cut off with the server.
    for (;;) await call(url, 'GET /v1/orders');
  });
  await until(
    async () => (await sql`select 1 from idem where key like 'old-%' and state = 'done' limit 1`).length === 0,
  );
  assert.equal((await call(url, 'POST /v1/orders', kept)).text, first.text);
});
