import assert from 'node:assert/strict';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, beforeEach, test } from 'node:test';
import postgres from 'postgres';
import { migrate } from '../../src/db/migrate.ts';
import { createTestDatabase, emptyDatabase, type TestDatabase, temporaryFolder } from '../helpers/database.ts';

const folder = temporaryFolder();
const databases: TestDatabase[] = [];
let url: string;

beforeEach(async () => {
  const database = await emptyDatabase();
  databases.push(database);
  url = database.url;
});
after(async () => {
  await Promise.all(databases.map((database) => database.drop()));
  rmSync(folder, { recursive: true });
});

/** Migrations as drizzle-kit writes them, one a text; names one of the folders of this file. */
function migrations(name: string, ...texts: string[]): string {
  const path = join(folder, name);
  mkdirSync(join(path, 'meta'), { recursive: true });
  const entries = texts.map((text, i) => {
    const tag = `${String(i).padStart(4, '0')}_step`;
    writeFileSync(join(path, `${tag}.sql`), text);
    return { idx: i, version: '7', when: 1_000 + i, tag, breakpoints: true };
  });
  writeFileSync(join(path, 'meta', '_journal.json'), JSON.stringify({ version: '7', dialect: 'postgresql', entries }));
  return path;
}

async function rows(statement: string): Promise<postgres.Row[]> {
  const sql = postgres(url, { max: 1 });
  try {
    return [...(await sql.unsafe(statement))];
  } finally {
    await sql.end();
  }
}

const twoSteps = [
  'create table a (n int);--> statement-breakpoint\ncreate table b (n int);',
  'insert into a values (1);',
];

test('the migrations of the project make the tables on an empty database, and then there is nothing to do', async () => {
  assert.ok((await migrate(url)) >= 1);
  assert.equal(await migrate(url), 0);
  const [row] = await rows(`select to_regclass('idem') is not null as there`);
  assert.equal(row?.there, true);
});

test('six that migrate an empty database at once apply each migration once', async () => {
  const path = migrations('at-once', ...twoSteps);
  const applied = await Promise.all(Array.from({ length: 6 }, () => migrate(url, path)));
  assert.deepEqual(applied.sort(), [0, 0, 0, 0, 0, 2]);
  assert.equal((await rows('select * from a')).length, 1);
});

test('only migrations newer than the last applied one are applied', async () => {
  assert.equal(await migrate(url, migrations('first', twoSteps[0] as string)), 1);
  assert.equal(await migrate(url, migrations('both', ...twoSteps)), 1);
  assert.equal((await rows('select * from a')).length, 1);
});

test('a migration that fails leaves nothing of itself and of those before it', async () => {
  await assert.rejects(migrate(url, migrations('failing', twoSteps[0] as string, 'insert into nowhere values (1);')), {
    code: '42P01',
  });
  const [row] = await rows(`select to_regclass('a') as a, to_regclass('drizzle.__drizzle_migrations') as drizzle`);
  assert.deepEqual({ ...row }, { a: null, drizzle: null });
  assert.equal(await migrate(url, migrations('mended', ...twoSteps)), 2);
});

test("drizzle's own table remembers, so that its tools agree", async () => {
  await migrate(url, migrations('remembered', ...twoSteps));
  const found = await rows('select hash, created_at from drizzle.__drizzle_migrations order by id');
  assert.deepEqual(
    found.map((row) => Number(row.created_at)),
    [1_000, 1_001],
  );
  assert.match(found[0]?.hash, /^[0-9a-f]{64}$/);
});

test('a migration may take longer than a statement of the server', async () => {
  assert.equal(await migrate(url, migrations('slow', 'select pg_sleep(5.5);')), 1);
});

test('a database cloned for a test is migrated', async () => {
  const database = await createTestDatabase();
  databases.push(database);
  assert.equal(await migrate(database.url), 0);
});
