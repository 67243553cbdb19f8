import type { RatioDefinition } from '../statistics/summary.ts';
import { contentionFigures } from './contention.ts';
import type { Figures } from './figures.ts';
import { growthFigures } from './growth.ts';
import { httpFigures } from './http.ts';
import { keysFigures } from './keys.ts';
import { lockingFigures } from './locking.ts';
import { overloadFigures } from './overload.ts';
import { streamsFigures } from './streams.ts';
import { tagsFigures } from './tags.ts';

/** How each cell is told, in the order of the report. */
export const figures: readonly Figures[] = [
  lockingFigures,
  contentionFigures,
  keysFigures,
  tagsFigures,
  growthFigures,
  streamsFigures,
  httpFigures,
  overloadFigures,
];

/** Every ratio that statistics are made of. */
export const ratios: readonly RatioDefinition[] = figures.flatMap(({ cell, ratios: own }) =>
  own.map((ratio) => ({ ...ratio, cell })),
);
