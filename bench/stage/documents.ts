import { tenantDigest } from '../../src/auth/tenant-digest.ts';
import { formatVersionTag } from '../../src/protocol/version-tag.ts';
import { prose } from './prose.ts';
import { type Stage, tenant } from './stage.ts';

/** Characters of a document that models rewrite. */
const bodyLength = 400;

/** The tag of a document's first version. */
export function firstTag(id: string): string {
  return formatVersionTag(id, 1, tenantDigest(tenant));
}

/** Makes documents at version 1. */
export async function insertDocs(stage: Stage, ids: readonly string[]): Promise<void> {
  const { sql } = stage.database;
  const rows = ids.map((id, n) => ({ id, title: `Document ${n}`, body: prose(n, bodyLength) }));
  await sql`
    insert into docs (tenant, id, title, body, version, created_at, updated_at, updated_by)
    select ${tenant}, w.id, w.title, w.body, 1, now(), now(), 'bench'
    from jsonb_to_recordset(${sql.json(rows)}) as w(id text, title text, body text)`;
}

/** The sum of the versions of all documents whose id begins with `prefix`, and how many there are. */
export async function sumVersions(stage: Stage, prefix: string): Promise<{ docs: number; versions: number }> {
  const [row] = await stage.database.sql<{ docs: number; versions: number }[]>`
    select count(*)::int as docs, coalesce(sum(version), 0)::int as versions from docs
    where tenant = ${tenant} and starts_with(id, ${prefix})`;
  return row ?? { docs: 0, versions: 0 };
}
