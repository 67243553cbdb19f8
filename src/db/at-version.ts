import { and, inArray, notInArray, type SQL, sql } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import type { VersionCondition } from '../protocol/version-condition.ts';

/** A version condition on a column of whole numbers, for drizzle's `where`. */
export function atVersion(version: PgColumn, { wanted, unwanted }: VersionCondition): SQL | undefined {
  return and(
    wanted === 'any' ? undefined : inArray(version, [...wanted]),
    unwanted === 'any' ? sql`false` : notInArray(version, [...unwanted]),
  );
}
