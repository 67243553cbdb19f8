import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRouter, splitTarget } from '../../src/http/router.ts';

const route = createRouter([
  { method: 'GET', path: '/', target: 'root' },
  { method: 'GET', path: '/v1/things', target: 'list' },
  { method: 'POST', path: '/v1/things', target: 'create' },
  { method: 'GET', path: '/v1/things/{id}', target: 'read' },
  { method: 'PUT', path: '/v1/things/{id}/state', target: 'state' },
  { method: 'GET', path: '/v1/things/new', target: 'new' },
]);

test('a path is found with its parameters, HEAD wherever GET is', () => {
  const found: [method: string, path: string, target: string, params: Record<string, string>][] = [
    ['GET', '/', 'root', {}],
    ['HEAD', '/v1/things', 'list', {}],
    ['POST', '/v1/things', 'create', {}],
    ['GET', '/v1/things/a', 'read', { id: 'a' }],
    ['GET', '/v1/things/new', 'new', {}],
    ['PUT', '/v1/things/new2/state', 'state', { id: 'new2' }],
    ['GET', '/v1/things/a%2Fb%20%C3%A9', 'read', { id: 'a/b é' }],
    ['GET', '/v1/things/__proto__', 'read', { id: '__proto__' }],
    ['GET', '/%761/things', 'list', {}],
  ];
  for (const [method, path, target, params] of found) {
    const routed = route(method, path);
    assert.equal(routed.kind, 'found', path);
    assert.deepEqual(routed, { kind: 'found', target, params: { ...params } }, path);
  }
});

test('what is no route is not found, whatever it is made of', () => {
  for (const path of [
    '',
    'v1',
    '*',
    '/v1',
    '/v1/things/',
    '/v1//things',
    '//v1/things',
    '/v1/things/a/',
    '/v1/things/%',
  ]) {
    assert.equal(route('GET', path).kind, 'not_found', path);
  }
  for (const path of [
    '/v1/things/%00',
    '/v1/things/%ff',
    '/v1/things/%c3%28',
    '/constructor',
    '/v1/things/a/state/b',
  ]) {
    assert.equal(route('GET', path).kind, 'not_found', path);
  }
  assert.equal(route('GET', `/v1/things/${'a'.repeat(3_000)}`).kind, 'not_found');
});

test('a method that the path lacks is told which there are', () => {
  assert.deepEqual(route('DELETE', '/v1/things'), { kind: 'method_not_allowed', allow: ['GET', 'HEAD', 'POST'] });
  assert.deepEqual(route('GET', '/v1/things/a/state'), { kind: 'method_not_allowed', allow: ['PUT'] });
  assert.deepEqual(route('HEAD', '/v1/things/a/state'), { kind: 'method_not_allowed', allow: ['PUT'] });
  assert.equal(route('get', '/v1/things').kind, 'method_not_allowed');
});

test('two procedures at one place, or two names for one segment, are refused at the start', () => {
  const two = (first: string, second: string) => () =>
    createRouter([
      { method: 'GET', path: first, target: 1 },
      { method: 'GET', path: second, target: 2 },
    ]);
  assert.throws(two('/a/{id}', '/a/{id}'));
  assert.throws(two('/a/{id}', '/a/{name}/b'));
});

test('a target is split into path and query, in its absolute form too', () => {
  const cases: [target: string, path: string, query: string][] = [
    ['/a', '/a', ''],
    ['/a?', '/a', ''],
    ['/a?b=c?d', '/a', 'b=c?d'],
    ['http://host:80/a?b', '/a', 'b'],
    ['HTTPS://host', '/', ''],
    ['http://host?b', '/', 'b'],
    ['*', '*', ''],
    ['', '/', ''],
  ];
  for (const [target, path, query] of cases) assert.deepEqual(splitTarget(target), { path, query }, target);
});
