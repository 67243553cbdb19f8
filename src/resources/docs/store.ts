import type postgres from 'postgres';
import type { Database, Tx } from '../../db/pool.ts';
import type { VersionCondition, Versions } from '../../protocol/version-condition.ts';

/** A document as it is kept. */
export type DocRow = {
  readonly id: string;
  readonly title: string;
  readonly body: string;
  readonly version: number;
  readonly created_at: Date;
  readonly updated_at: Date;
  /** The `sub` that wrote this version. */
  readonly updated_by: string;
};

/** A document whose body may have been left where it is. */
export type DocHead = Omit<DocRow, 'body'> & { readonly body: string | null };

/** What a client writes. */
export type DocContent = { readonly title: string; readonly body: string };

/** The members that a patch sets. */
export type DocPatch = { readonly title?: string | undefined; readonly body?: string | undefined };

/** One document of one tenant; it need not exist. */
export type DocName = { readonly tenant: string; readonly id: string };

/** Runs one statement, by itself or in a transaction. */
export type Run = Database['query'];

/** Runs statements on the transaction's connection. */
export const inTransaction =
  (tx: Tx): Run =>
  (build) =>
    build(tx.sql);

type Written = Omit<DocRow, 'title' | 'body'>;

/** Inserts a document if the claim is still ours: part of the completion's statement. */
export function insertDoc(sql: postgres.Sql, tenant: string, doc: DocRow) {
  return sql`
    insert into docs (tenant, id, title, body, version, created_at, updated_at, updated_by)
    select ${tenant}, ${doc.id}, ${doc.title}, ${doc.body}, ${doc.version}::integer, ${doc.created_at}::timestamptz,
      ${doc.updated_at}::timestamptz, ${doc.updated_by}
    from fence`;
}

/**
 * Creates the document, or gives a deleted one a new life one version on. Undefined: it is there already; a creation that
 * is not committed yet is waited for.
 */
export async function createDoc(
  run: Run,
  { tenant, id }: DocName,
  content: DocContent,
  by: string,
): Promise<DocRow | undefined> {
  const rows = await run(
    (sql) => sql<Written[]>`
      insert into docs (tenant, id, title, body, version, created_at, updated_at, updated_by)
      values (${tenant}, ${id}, ${content.title}, ${content.body}, 1, now(), now(), ${by})
      on conflict (tenant, id) do update set title = excluded.title, body = excluded.body, version = docs.version + 1,
        created_at = excluded.created_at, updated_at = excluded.updated_at, updated_by = excluded.updated_by, deleted_at = null
      where docs.deleted_at is not null
      returning id, version, created_at, updated_at, updated_by`,
  );
  return rows[0] && { ...rows[0], ...content };
}

/** Replaces the content under the condition. Undefined: the document is not there, or not at a version that is allowed. */
export async function replaceDoc(
  run: Run,
  { tenant, id }: DocName,
  condition: VersionCondition,
  content: DocContent,
  by: string,
): Promise<DocRow | undefined> {
  const rows = await run(
    (sql) => sql<Written[]>`
      update docs set title = ${content.title}, body = ${content.body}, ${nextVersion(sql, by)}
      where tenant = ${tenant} and id = ${id} and deleted_at is null and ${allowed(sql, condition)}
      returning id, version, created_at, updated_at, updated_by`,
  );
  return rows[0] && { ...rows[0], ...content };
}

/** Sets the members that are given, under the condition. Undefined: as `replaceDoc`, or nothing would change. */
export async function patchDoc(
  run: Run,
  { tenant, id }: DocName,
  condition: VersionCondition,
  patch: DocPatch,
  by: string,
): Promise<DocRow | undefined> {
  const rows = await run(
    (sql) => sql<DocRow[]>`
      update docs set title = coalesce(patch.title, docs.title), body = coalesce(patch.body, docs.body), ${nextVersion(sql, by)}
      from (values (${patch.title ?? null}::text, ${patch.body ?? null}::text)) as patch (title, body)
      where tenant = ${tenant} and id = ${id} and deleted_at is null and ${allowed(sql, condition)}
        and (docs.title <> patch.title or docs.body <> patch.body)
      returning id, docs.title, docs.body, version, created_at, updated_at, updated_by`,
  );
  return rows[0];
}

/** Deletes under the condition. Undefined: as `replaceDoc`. The row stays without content and keeps the version. */
export async function deleteDoc(
  run: Run,
  { tenant, id }: DocName,
  condition: VersionCondition,
  by: string,
): Promise<DocRow | undefined> {
  const rows = await run(
    (sql) => sql<DocRow[]>`
      update docs set title = '', body = '', deleted_at = now(), updated_at = greatest(now(), updated_at), updated_by = ${by}
      where tenant = ${tenant} and id = ${id} and deleted_at is null and ${allowed(sql, condition)}
      returning id, title, body, version, created_at, updated_at, updated_by`,
  );
  return rows[0];
}

/** One document; its body is read (out of line, where large ones are) only at a version that the condition allows, else null. */
export function findDoc(sql: postgres.Sql, { tenant, id }: DocName, bodyAt: VersionCondition) {
  return sql<DocHead[]>`
    select id, title, case when ${allowed(sql, bodyAt)} then body end as body,
      version, created_at, updated_at, updated_by
    from docs where tenant = ${tenant} and id = ${id} and deleted_at is null`;
}

/** A place in the list: behind this document. */
export type DocPosition = { readonly createdAt: string; readonly id: string };

/** Up to `limit` documents of the tenant behind a place, newest first, without their bodies. */
export function listDocs(sql: postgres.Sql, tenant: string, after: DocPosition | undefined, limit: number) {
  const isBehind =
    after === undefined ? sql`` : sql`and (created_at, id) < (${after.createdAt}::timestamptz, ${after.id})`;
  return sql<Omit<DocRow, 'body'>[]>`
    select id, title, version, created_at, updated_at, updated_by from docs
    where tenant = ${tenant} and deleted_at is null ${isBehind}
    order by created_at desc, id desc limit ${limit}`;
}

/**
 * A version's time is after its predecessor's, though their transactions may have begun the other way round. So a document
 * has the same two times only in the first version of a life.
 */
function nextVersion(sql: postgres.Sql, by: string) {
  return sql`
    version = version + 1, updated_at = greatest(now(), updated_at + interval '1 millisecond'), updated_by = ${by}`;
}

function allowed(sql: postgres.Sql, { wanted, unwanted }: VersionCondition) {
  return sql`${oneOf(sql, wanted)} and not ${oneOf(sql, unwanted)}`;
}

function oneOf(sql: postgres.Sql, versions: Versions) {
  return sql`(${versions === 'any'}::bool or version = any(${`{${versions === 'any' ? '' : versions.join(',')}}`}::int4[]))`;
}
