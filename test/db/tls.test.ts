import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chownSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { postgresAccount } from '../../src/db/embedded/account.ts';
import { DatabaseUnavailable, openDatabase } from '../../src/db/pool.ts';
import { type PrivateServer, startPrivateServer, temporaryFolder } from '../helpers/database.ts';

const noOpenssl = spawnSync('openssl', ['version']).status !== 0 && 'no openssl';
const folder = temporaryFolder();
const files = { key: join(folder, 'key.pem'), certificate: join(folder, 'certificate.pem') };
let server: PrivateServer;

before(async () => {
  if (noOpenssl) return;
  const request = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost'];
  spawnSync('openssl', [...request, '-keyout', files.key, '-out', files.certificate]);
  const account = postgresAccount();
  if (account !== undefined) for (const file of Object.values(files)) chownSync(file, account.uid, account.gid);
  server = await startPrivateServer({
    settings: { ssl: 'on', ssl_cert_file: files.certificate, ssl_key_file: files.key },
  });
});
after(async () => {
  await server?.remove();
  rmSync(folder, { recursive: true });
});

const open = (mode: string) =>
  openDatabase({ url: `${server.url}?sslmode=${mode}`, max: 2, prepare: true, queryTimeoutMs: 1_000 });
const encrypted = 'select ssl from pg_stat_ssl where pid = pg_backend_pid()';

test('sslmode=require encrypts, sslmode=disable does not, and verify-full wants a certificate it knows', {
  skip: noOpenssl,
}, async () => {
  for (const [mode, ssl] of [
    ['require', true],
    ['disable', false],
  ] as const) {
    const db = open(mode);
    assert.equal((await db.query((sql) => sql.unsafe(encrypted)))[0]?.ssl, ssl);
    await db.close(0);
  }
  const db = open('verify-full');
  await assert.rejects(
    db.query((sql) => sql`select 1`),
    (error: DatabaseUnavailable) =>
      error.reason === 'connect' && (error.cause as NodeJS.ErrnoException).code === 'DEPTH_ZERO_SELF_SIGNED_CERT',
  );
  await db.close(0);
});

test('a server without encryption is refused by sslmode=require and taken by sslmode=prefer', {
  skip: noOpenssl,
}, async () => {
  const plain = await startPrivateServer();
  const options = { max: 1, prepare: true, queryTimeoutMs: 2_000 };
  const strict = openDatabase({ url: `${plain.url}?sslmode=require`, ...options });
  await assert.rejects(
    strict.query((sql) => sql`select 1`),
    { reason: 'connect', sent: false },
  );
  const lenient = openDatabase({ url: `${plain.url}?sslmode=prefer`, ...options });
  assert.equal((await lenient.query((sql) => sql.unsafe(encrypted)))[0]?.ssl, false);
  await Promise.all([strict.close(0), lenient.close(0)]);
  await plain.remove();
});

test('encrypted sessions that are killed, cut at the deadline or lose their server cost no more than plain ones', {
  skip: noOpenssl,
}, async () => {
  const db = open('require');
  const killed = db.transaction(async ({ sql }) => {
    const [row] = await sql`select pg_backend_pid() as pid`;
    await db.query((other) => other`select pg_terminate_backend(${row?.pid as number})`);
    return sql`select 1`;
  });
  await assert.rejects(killed, { reason: 'lost', commitUnknown: false });
  await assert.rejects(
    db.query((sql) => sql`select pg_sleep(30)`),
    { reason: 'deadline' },
  );
  await server.stop();
  await assert.rejects(
    db.query((sql) => sql`select 1`),
    DatabaseUnavailable,
  );
  await server.start();
  assert.equal((await db.query((sql) => sql.unsafe(encrypted)))[0]?.ssl, true);
  await db.close(0);
});
