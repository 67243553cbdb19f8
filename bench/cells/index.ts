import type { Cell } from '../cell.ts';
import { growth } from './growth.ts';
import { http } from './http.ts';
import { keys } from './keys.ts';
import { tags } from './tags.ts';

/** All cells, in the order of the report. */
export const cells: readonly Cell[] = [keys, tags, growth, http];
