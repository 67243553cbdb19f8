import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DrizzleQueryError } from 'drizzle-orm/errors';
import { constraintOf, isRetryable, isSessionLost, isUnavailable, sqlstateOf } from '../../src/db/sqlstate.ts';

const coded = (code: string, more: object = {}) => Object.assign(new Error(code), { code }, more);

test('the SQLSTATE is found through what drizzle and others wrap around it', () => {
  const inner = coded('23505', { constraint_name: 'orders_pkey' });
  const wrapped = new DrizzleQueryError('insert', [], inner);
  assert.equal(sqlstateOf(wrapped), '23505');
  assert.equal(constraintOf(wrapped), 'orders_pkey');
  assert.equal(sqlstateOf(new Error('outer', { cause: wrapped })), '23505');
});

test('codes of the system and of other libraries are no SQLSTATE', () => {
  for (const code of ['EPIPE', 'EPERM', 'ECONNRESET', 'ERR_ASSERTION', 'CONNECTION_CLOSED']) {
    assert.equal(sqlstateOf(coded(code)), undefined, code);
  }
  for (const value of [undefined, null, '23505', { code: '23505' }]) assert.equal(sqlstateOf(value), undefined);
});

test('which errors mean that the database is away, and which that the same work may be tried again', () => {
  const table: [code: string, lost: boolean, unavailable: boolean, retryable: boolean][] = [
    ['57P01', true, true, true],
    ['57P03', true, true, true],
    ['08006', true, true, true],
    ['25P03', true, true, true],
    ['25006', true, true, true],
    ['53300', true, true, true],
    ['57014', false, true, true],
    ['53100', false, true, true],
    ['40001', false, false, true],
    ['40P01', false, false, true],
    ['55P03', false, false, true],
    ['23505', false, false, false],
    ['42P01', false, false, false],
    // Of the driver: the pool makes them DatabaseUnavailable; from elsewhere (a model's server) they say nothing of Postgres.
    ['CONNECTION_CLOSED', true, false, false],
    ['ECONNREFUSED', true, false, false],
  ];
  for (const [code, ...expected] of table) {
    const error = coded(code);
    assert.deepEqual([isSessionLost(error), isUnavailable(error), isRetryable(error)], expected, code);
  }
});
