import type { Database } from '../../db/pool.ts';
import type { Mounted } from '../../handler.ts';
import type { Pager } from '../page.ts';
import { docReads } from './reads.ts';
import { docWrites } from './writes.ts';

/** The procedures of `/v1/docs`. */
export function docProcedures(db: Database, pager: Pager): Mounted[] {
  return [...docReads(db, pager), ...docWrites(db)];
}
