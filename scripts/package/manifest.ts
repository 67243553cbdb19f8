import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { project } from './build.ts';

/** Packages whose objects pass between the library and its users: there must be one copy of each. */
const shared = ['drizzle-orm', 'valibot'];
/** What of the project's own manifest is the library's too. */
const kept = ['name', 'version', 'description', 'license', 'type', 'engines', 'exports'];

type Manifest = Record<string, unknown> & { readonly dependencies: Readonly<Record<string, string>> };

/**
 * The manifest of the library: without the embedded Postgres and whatever else the program needs besides. Throws for a
 * package that is imported and no dependency of the project.
 */
export function libraryManifest(imported: readonly string[]): Record<string, unknown> {
  const own = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as Manifest;
  const versionOf = (name: string) => {
    const version = own.dependencies[name];
    if (version === undefined) throw new Error(`the library imports ${name}, which is no dependency`);
    return version;
  };
  const entries = (names: readonly string[], range: string) =>
    Object.fromEntries(names.map((name) => [name, `${range}${versionOf(name)}`]));
  return {
    ...Object.fromEntries(kept.map((name) => [name, own[name]])),
    files: ['dist', 'client.md'],
    dependencies: entries(
      imported.filter((name) => !shared.includes(name)),
      '',
    ),
    peerDependencies: entries(shared, '^'),
  };
}
