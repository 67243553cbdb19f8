import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, normalize, relative } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const project = fileURLToPath(new URL('..', import.meta.url));

/**
 * The parts of `src`, the highest first. A part may import what stands on a line below its own. A part is a folder or a file
 * at the top; each resource is a part.
 */
const layers: readonly (readonly string[])[] = [
  ['main.ts', 'desk', 'index.ts'],
  ['serve.ts', 'start-server.ts'],
  ['host.ts', 'openapi-route.ts', 'metrics.ts', 'page'],
  ['open-routes.ts', 'guest'],
  ['app.ts'],
  ['pipeline', 'resources/orders', 'resources/docs', 'resources/jobs', 'resources/credits', 'resources/keys'],
  ['versioned-table.ts'],
  ['resources/page.ts', 'versioned.ts'],
  ['handler.ts'],
  ['idempotency', 'auth', 'limits', 'llm', 'credits'],
  ['db', 'http', 'log.ts', 'reference', 'client'],
  ['config.ts', 'loop.ts', 'random.ts'],
  ['protocol'],
];

/** Parts that may import less than what stands below them. */
const only: Readonly<Record<string, readonly string[]>> = {
  protocol: [],
  client: ['protocol'],
  reference: ['protocol'],
  http: ['protocol'],
  auth: ['protocol'],
  llm: ['protocol'],
};

type Import = { readonly from: string; readonly to: string };

const sources = sourceFiles(['src', 'bench', 'scripts', 'test']);
const texts = new Map(sources.map((path) => [path, readFileSync(join(project, path), 'utf8')]));
const imports = sources.flatMap(importsOf);

function sourceFiles(folders: readonly string[]): string[] {
  return folders.flatMap((folder) =>
    readdirSync(join(project, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
      .map((entry) => relative(project, join(entry.parentPath ?? entry.path, entry.name))),
  );
}

/** What a file imports: other files of ours by path, packages by name. */
function importsOf(path: string): Import[] {
  const text = texts.get(path) ?? '';
  const statement =
    /^import\s[^;'"]*?'([^']+)'|^export\s(?:type\s)?[{*][^;'"]*?\sfrom\s'([^']+)'|\bimport\('([^']+)'\)/gm;
  return [...text.matchAll(statement)].map(([, ...targets]) => {
    const target = targets.find((name) => name !== undefined) ?? '';
    return { from: path, to: target.startsWith('.') ? normalize(join(dirname(path), target)) : target };
  });
}

function partOf(path: string): string {
  const [first = '', second = ''] = path.slice('src/'.length).split('/');
  return first === 'resources' ? `resources/${second}` : first;
}

const rankOf = (part: string) => layers.findIndex((layer) => layer.includes(part));
const isOurs = (target: string) => sources.includes(target);

test('every part of src has its place in the layers, and every place its part', () => {
  const parts = new Set(sources.filter((path) => path.startsWith('src/')).map(partOf));
  assert.deepEqual(
    [...parts].filter((part) => rankOf(part) === -1),
    [],
  );
  assert.deepEqual(
    layers.flat().filter((part) => !parts.has(part)),
    [],
  );
});

test('imports go one way: from a part to those below it, and no resource knows another', () => {
  const wrong = imports
    .filter(({ from, to }) => from.startsWith('src/') && to.startsWith('src/'))
    .map(({ from, to }) => ({ from, to, upper: partOf(from), lower: partOf(to) }))
    .filter(({ upper, lower }) => upper !== lower)
    .filter(({ upper, lower }) => rankOf(lower) <= rankOf(upper) || only[upper]?.includes(lower) === false);
  assert.deepEqual(
    wrong.map(({ from, to }) => `${from} → ${to}`),
    [],
  );
});

test('src imports neither tests nor benchmarks nor scripts', () => {
  const wrong = imports.filter(({ from, to }) => from.startsWith('src/') && /^(test|bench|scripts)\//.test(to));
  assert.deepEqual(wrong, []);
});

test('no files import each other in a circle', () => {
  const graph = new Map<string, string[]>();
  for (const { from, to } of imports) if (isOurs(to)) graph.set(from, [...(graph.get(from) ?? []), to]);
  const done = new Set<string>();
  const circles: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    if (trail.includes(path)) circles.push([...trail.slice(trail.indexOf(path)), path].join(' → '));
    if (done.has(path)) return;
    done.add(path);
    for (const next of graph.get(path) ?? []) visit(next, [...trail, path]);
  };
  for (const path of graph.keys()) visit(path, []);
  assert.deepEqual(circles, []);
});

test('every import of a file of ours leads to one, written with its .ts', () => {
  const lost = imports.filter(
    ({ to }) => /^(src|test|bench|scripts|\.\.)/.test(to) && !isOurs(to) && !to.endsWith('.json'),
  );
  assert.deepEqual(lost, []);
});

test('src uses builtins with node: and packages that are installed without the development ones', () => {
  const { dependencies } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'));
  const packages = imports
    .filter(({ from, to }) => from.startsWith('src/') && !to.startsWith('src/'))
    .map(({ from, to }) => ({
      from,
      name: to.startsWith('@') ? to.split('/').slice(0, 2).join('/') : (to.split('/')[0] ?? ''),
    }));
  const wrong = packages.filter(({ name }) => !name.startsWith('node:') && !(name in dependencies));
  assert.deepEqual(wrong, []);
  assert.deepEqual(
    packages.filter(({ name }) => builtinModules.includes(name)),
    [],
  );
  // A browser bundles the client: it runs without Node.
  assert.deepEqual(
    packages.filter(({ from, name }) => partOf(from) === 'client' && name !== 'valibot'),
    [],
  );
});

const testFiles = sources.filter((path) => path.endsWith('.test.ts'));

/** The titles of a file's tests that are plain text; subtests are named within their test. */
function titlesOf(path: string): string[] {
  const text = texts.get(path) ?? '';
  return [...text.matchAll(/^test\(\s*(['"`])((?:\\.|(?!\1).)*)\1/gm)].map((match) => match[2] as string);
}

test('a title names one test, in its file and in the whole project', () => {
  const seen = new Map<string, string>();
  const twice: string[] = [];
  for (const path of testFiles) {
    for (const title of titlesOf(path)) {
      const other = seen.get(title);
      if (other !== undefined) twice.push(`${other}, ${path}: ${title}`);
      seen.set(title, path);
    }
  }
  assert.deepEqual(twice, []);
});

test('no test is run alone, left out or left for later', () => {
  const marked = testFiles.filter((path) =>
    /\b(?:test|t|it|describe)\.(?:only|todo)\b|\bonly: true/.test(texts.get(path) ?? ''),
  );
  assert.deepEqual(
    marked.filter((path) => path !== 'test/architecture.test.ts'),
    [],
  );
});
