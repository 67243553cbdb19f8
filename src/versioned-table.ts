import { and, eq, type InferInsertModel, type InferSelectModel, type SQL, sql } from 'drizzle-orm';
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core';
import { atVersion } from './db/at-version.ts';
import type { Orm } from './db/pool.ts';
import type { Answer, Context } from './handler.ts';
import { problem } from './protocol/errors.ts';
import { allowsVersion } from './protocol/version-condition.ts';
import { conditionOf, staleVersion, tagOf } from './versioned.ts';

/** A drizzle table of versioned things: text `tenant` and `id` are its primary key, whole numbers count the versions from 1. */
export type TableWithVersions = PgTable & {
  readonly tenant: PgColumn & { readonly _: { readonly data: string } };
  readonly id: PgColumn & { readonly _: { readonly data: string } };
  readonly version: PgColumn & { readonly _: { readonly data: number } };
};

type Identity = { readonly tenant: string; readonly id: string; readonly version: number };

/** Reading and changing versioned things, each as one tenant's. */
export type VersionedTable<T extends TableWithVersions> = {
  /** The thing, or 404. */
  find(orm: Orm, tenant: string, id: string): Promise<InferSelectModel<T>>;
  /**
   * Changes the thing if it is at the version that the request's If-Match names, in one statement; else 404, or 412 with the
   * tag that is current. Of writers at once with one tag exactly one gets through.
   */
  change(
    orm: Orm,
    ctx: Pick<Context, 'tenant' | 'ifMatch' | 'ifNoneMatch'>,
    id: string,
    changes: Partial<Omit<InferInsertModel<T>, keyof Identity>>,
  ): Promise<InferSelectModel<T>>;
  /** The thing as an answer: its tag, and all columns but the tenant. */
  answer(status: number, row: InferSelectModel<T>, headers?: Readonly<Record<string, string>>): Answer;
};

/** A thing that vanishes and comes back between two statements is looked at again so often. */
const maxTries = 3;

/** The statements that a versioned resource on a table of your own needs. */
export function versionedTable<T extends TableWithVersions>(table: T): VersionedTable<T> {
  // Inside, a row is known by the columns that every such table has.
  type Row = InferSelectModel<T>;
  const at = (tenant: string, id: string) => and(eq(table.tenant, tenant), eq(table.id, id)) as SQL;
  const select = async (orm: Orm, where: SQL): Promise<Row | undefined> => {
    const rows = await orm
      .select()
      .from(table as PgTable)
      .where(where);
    return rows[0] as Row | undefined;
  };
  return {
    async find(orm, tenant, id) {
      const row = await select(orm, at(tenant, id));
      if (row === undefined) throw problem('not_found');
      return row;
    },
    async change(orm, ctx, id, changes) {
      const condition = conditionOf(ctx, id);
      const where = and(at(ctx.tenant, id), atVersion(table.version, condition));
      const next = { ...changes, version: sql`${table.version} + 1` };
      for (let tries = 1; ; tries += 1) {
        const rows = await orm
          .update(table as PgTable)
          .set(next as never)
          .where(where)
          .returning();
        if (rows[0] !== undefined) return rows[0] as Row;
        // A statement of its own: only that one is sure to see what a writer that was waited for has committed.
        const current = (await select(orm, at(ctx.tenant, id))) as Identity | undefined;
        if (current === undefined) throw problem('not_found');
        if (!allowsVersion(condition, current.version) || tries === maxTries) {
          throw staleVersion(ctx.tenant, id, current.version);
        }
      }
    },
    answer(status, row, headers = {}) {
      const { tenant, ...body } = row as Identity;
      return { status, headers: { ETag: tagOf(tenant, body.id, body.version), ...headers }, body };
    },
  };
}
