import { createHash, createHmac } from 'node:crypto';
import type { Answer } from '../handler.ts';
import { formatCursor, parseCursor } from '../protocol/cursor.ts';
import { formatTag } from '../protocol/entity-tag.ts';
import { problem } from '../protocol/errors.ts';

/** Makes and reads a list's pages: cursors, `next` and the tag. */
export type Pager = {
  /** The position that `?after` stands for; undefined at the first page. Throws 400 `invalid_cursor`. */
  start(binding: string, after: string | undefined): readonly string[] | undefined;
  /** The cursor behind a row. */
  cursor(binding: string, position: readonly string[]): string;
};

/** A pager whose cursors nobody else can make. Processes with the same secret read each other's. */
export function createPager(secret: string): Pager {
  const key = createHash('sha256').update(`cursor ${secret}`).digest();
  const mac = (text: string) => createHmac('sha256', key).update(text).digest('base64url').slice(0, 22);
  return {
    start(binding, after) {
      if (after === undefined) return undefined;
      const position = parseCursor(after, binding, mac);
      if (position === undefined) throw problem('invalid_cursor');
      return position;
    },
    cursor: (binding, position) => formatCursor(binding, position, mac),
  };
}

/** What a list is bound to: tenant, route and the filters that choose its rows. */
export function listBinding(tenant: string, route: string, filters: Readonly<Record<string, string>> = {}): string {
  return JSON.stringify([tenant, route, filters]);
}

/** A page's rows and what the caller asked for. One row more than `limit` was read if there is a next page. */
export type Page<Row> = {
  readonly binding: string;
  readonly limit: number;
  readonly after: string | undefined;
  readonly rows: readonly Row[];
  readonly position: (row: Row) => readonly string[];
  readonly item: (row: Row) => unknown;
  /** Identity and version of a row: what its item can change with. */
  readonly version: (row: Row) => readonly (string | number)[];
  /** Members beside `items` and `next`; part of the tag. */
  readonly extra?: Readonly<Record<string, unknown>>;
};

/**
 * A page as an answer. Its tag is a digest of the tenant, the query and the versions of the rows that are shown: counts, sums
 * and the newest time stay the same when an older transaction commits late or a row is deleted and another inserted.
 */
export function pageAnswer<Row>(pager: Pager, page: Page<Row>): Answer {
  const shown = page.rows.slice(0, page.limit);
  const last = shown.at(-1);
  const hasMore = page.rows.length > page.limit && last !== undefined;
  const seen = JSON.stringify([
    page.binding,
    page.limit,
    page.after ?? null,
    shown.map(page.version),
    hasMore,
    page.extra ?? null,
  ]);
  const digest = createHash('sha256').update(seen).digest('base64url').slice(0, 22);
  return {
    status: 200,
    headers: { ETag: formatTag({ opaque: `list-${digest}`, weak: true }) },
    body: {
      ...page.extra,
      items: shown.map(page.item),
      next: hasMore ? pager.cursor(page.binding, page.position(last)) : null,
    },
  };
}
