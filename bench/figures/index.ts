import type { RatioDefinition } from '../statistics/summary.ts';
import type { Figures } from './figures.ts';
import { growthFigures } from './growth.ts';
import { httpFigures } from './http.ts';
import { keysFigures } from './keys.ts';
import { tagsFigures } from './tags.ts';

/** How each cell is told, in the order of the report. */
export const figures: readonly Figures[] = [keysFigures, tagsFigures, growthFigures, httpFigures];

/** Every ratio that statistics are made of. */
export const ratios: readonly RatioDefinition[] = figures.flatMap(({ cell, ratios: own }) =>
  own.map((ratio) => ({ ...ratio, cell })),
);
