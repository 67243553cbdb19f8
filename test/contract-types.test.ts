import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const project = fileURLToPath(new URL('..', import.meta.url));

const write = "path: '/x/{id}', summary: '', answers: { 201: null }";
const post = `method: 'POST', ${write}`;
const get = "method: 'GET', path: '/x', summary: '', answers: { 200: null }";
const answer = 'async () => ({ status: 201 })';

/** Declarations, each on a line of its own, and whether it must compile. */
const declarations: readonly [what: string, code: string, compiles: boolean][] = [
  ['a POST with a required key', `procedure({ ${post}, key: 'required' })`, true],
  ['a POST without a key', `procedure({ ${post} })`, false],
  ['a POST whose key is only accepted', `procedure({ ${post}, key: 'accepted' })`, false],
  ['a POST whose key is undefined', `procedure({ ${post}, key: undefined })`, false],
  ['a PUT that accepts a key', `procedure({ method: 'PUT', ${write}, key: 'accepted' })`, true],
  ['a PUT that says nothing of keys', `procedure({ method: 'PUT', ${write} })`, false],
  ['a DELETE that says nothing of keys', `procedure({ method: 'DELETE', ${write} })`, false],
  ['a GET', `procedure({ ${get} })`, true],
  ['a GET with a body', `procedure({ ${get}, body: v.string() })`, false],
  ['a GET with a key', `procedure({ ${get}, key: 'required' })`, false],
  ['a GET that pays', `procedure({ ${get}, pays: true })`, false],
  ['an unknown flag', `procedure({ ${get}, tags: true })`, false],
  ['an unknown method', `procedure({ method: 'FETCH', ${write}, key: 'required' })`, false],
  ['a path without its slash', "procedure({ method: 'GET', path: 'x', summary: '', answers: { 200: null } })", false],
  ['an unknown error code', `procedure({ ${get}, problems: ['no_such_code'] })`, false],
  ['a read for a GET', `mount(procedure({ ${get} }), { read: async () => ({ status: 200 }) })`, true],
  ['a commit for a GET', `mount(procedure({ ${get} }), { commit: ${answer} })`, false],
  ['a read for a POST', `mount(procedure({ ${post}, key: 'required' }), { read: ${answer} })`, false],
  [
    'a handler that reads a parameter of the path',
    `mount(procedure({ ${post}, key: 'required' }), { commit: async (_tx, _p, { params }) => ({ status: params.id.length }) })`,
    true,
  ],
  [
    'a handler that misspells a parameter of the path',
    `mount(procedure({ ${post}, key: 'required' }), { commit: async (_tx, _p, { params }) => ({ status: params.idd.length }) })`,
    false,
  ],
  [
    'a handler that uses a member the body does not have',
    `mount(procedure({ ${post}, key: 'required', body: v.strictObject({ n: v.number() }) }), { commit: async (_tx, _p, { body }) => ({ status: body.m }) })`,
    false,
  ],
  [
    'a handler that is given what prepare made',
    `mount<typeof made, number>(made, { prepare: async () => 201, commit: async (_tx, status) => ({ status }) })`,
    true,
  ],
  [
    'a handler that takes something else from prepare',
    `mount<typeof made, number>(made, { prepare: async () => '201', commit: async (_tx, status) => ({ status }) })`,
    false,
  ],
];

test('the contract table is a type: a POST without a required key, and whatever else does not fit, does not compile', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'retry-safe-types-'));
  t.after(() => rm(folder, { recursive: true }));
  const head = [
    `import * as v from '${join(project, 'node_modules/valibot/dist/index.mjs')}';`,
    `import { mount } from '${join(project, 'src/handler.ts')}';`,
    `import { procedure } from '${join(project, 'src/protocol/procedure.ts')}';`,
    `export const made = procedure({ ${post}, key: 'required' });`,
    'export const used = [v, mount];',
  ];
  const lines = declarations.map(([, code], i) => `export const d${i} = ${code};`);
  await writeFile(join(folder, 'declarations.mts'), [...head, ...lines, ''].join('\n'));
  await writeFile(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      extends: join(project, 'tsconfig.json'),
      compilerOptions: { typeRoots: [join(project, 'node_modules/@types')] },
      include: [],
      files: ['declarations.mts'],
    }),
  );
  const tsc = join(project, 'node_modules/typescript/bin/tsc');
  const output = await promisify(execFile)(process.execPath, [tsc, '-p', folder, '--pretty', 'false'], {
    cwd: folder,
  }).then(
    ({ stdout }) => stdout,
    (error: { stdout: string }) => error.stdout,
  );
  const refused = new Set(
    [...output.matchAll(/declarations\.mts\((\d+),\d+\): error/g)].map((match) => Number(match[1])),
  );
  const elsewhere = output.split('\n').filter((line) => /error/.test(line) && !/^\S*declarations\.mts\(/.test(line));
  assert.deepEqual(elsewhere, []);
  for (const [i, [what, , compiles]] of declarations.entries()) {
    assert.equal(!refused.has(head.length + 1 + i), compiles, `${what}\n${output}`);
  }
});
