/*
 * Found by the scenario of the promoted standby: the pool tried the hosts of `postgres://h1:5432,h2:5433/db` in turn, but the
 * configuration refused such a URL, because the web's notion of a URL has one host. So nobody could name a standby.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigError, parseConfig } from '../../src/config.ts';
import { addressesOf } from '../../src/db/dial.ts';

const hosts = (url: string) => addressesOf(url).map((address) => [address.host, address.port]);

test('a DATABASE_URL may name several hosts, and the pool tries each', () => {
  const DATABASE_URL = 'postgres://u:p,w@h1:5432,h2:5433/db?sslmode=disable';
  assert.equal(parseConfig({ DATABASE_URL }).databaseUrl, DATABASE_URL);
  assert.deepEqual(hosts(DATABASE_URL), [
    ['h1', 5432],
    ['h2', 5433],
  ]);
});

test('a comma makes no URL of what is none, and only the database has several hosts', () => {
  for (const DATABASE_URL of ['h1,h2', 'http://h1,h2/db', 'postgres://h1:no,h2:5433/db']) {
    assert.throws(() => parseConfig({ DATABASE_URL }), ConfigError);
  }
});
