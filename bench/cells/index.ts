import type { Cell } from '../cell.ts';
import { contention } from './contention.ts';
import { growth } from './growth.ts';
import { http } from './http.ts';
import { keys } from './keys.ts';
import { locking } from './locking.ts';
import { overload } from './overload.ts';
import { streams } from './streams.ts';
import { tags } from './tags.ts';

/** All cells, in the order of the report. */
export const cells: readonly Cell[] = [locking, contention, keys, tags, growth, streams, http, overload];
