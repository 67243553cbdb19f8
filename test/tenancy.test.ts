import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { tenantTables } from '../src/db/tables.ts';

const src = fileURLToPath(new URL('../src', import.meta.url));

/** Statements that go over all tenants on purpose, by the function they stand in. */
const overAllTenants = new Set([
  'readRows', // the doctor counts
  'countRows', // the metrics count
]);

function sources(): string[] {
  return readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !path.startsWith('client'))
    .map((path) => join(src, path));
}

/** Every `sql` template of a file with the function it stands in. */
function statementsOf(path: string): { where: string; text: string }[] {
  const code = readFileSync(path, 'utf8');
  const statements: { where: string; text: string }[] = [];
  for (const match of code.matchAll(/\bsql(?:<[^`]*?>)?`/g)) {
    const start = match.index + match[0].length;
    let depth = 0;
    let end = start;
    for (; end < code.length; end += 1) {
      if (code.startsWith('${', end)) depth += 1;
      else if (code[end] === '}' && depth > 0) depth -= 1;
      else if (code[end] === '`' && depth === 0) break;
    }
    const before = code.slice(0, match.index);
    const where = [...before.matchAll(/function\*? (\w+)/g)].at(-1)?.[1] ?? 'module';
    // The tables of the key are named by a function: they may be in a schema of their own.
    const text = code.slice(start, end).replaceAll(/\$\{keyTable\(\w+, \w+, '(\w+)'\)\}/g, '$1');
    statements.push({ where, text });
  }
  return statements;
}

test('every statement on a table of tenants names the tenant, or is one of those that go over all on purpose', () => {
  const table = new RegExp(`\\b(from|into|update|join)\\s+(${tenantTables.join('|')})\\b`, 'i');
  const named: string[] = [];
  const unnamed: string[] = [];
  for (const path of sources()) {
    for (const { where, text } of statementsOf(path)) {
      if (!table.test(text)) continue;
      if (/\btenant\b/.test(text)) named.push(where);
      else if (!overAllTenants.has(where)) unnamed.push(`${path.slice(src.length + 1)} ${where}`);
    }
  }
  assert.ok(named.length > 25, `only ${named.length} statements were found`);
  assert.deepEqual(unnamed, []);
});
