import type { Check, Measured, Settings } from './cell.ts';
import type { Environment } from './environment.ts';

type Common = {
  readonly at: string;
  readonly cell: string;
  readonly settings: Settings;
  readonly environment: Environment;
};

/** One round of one arm, as it was measured. `order`: its place within the round. */
export type RoundLine = Common &
  Measured & { readonly type: 'round'; readonly arm: string; readonly round: number; readonly order: number };

/** One check of what the database holds. */
export type CheckLine = Common & Check & { readonly type: 'check'; readonly ok: boolean };

/** A variant that did not come to its end. */
export type FaultLine = Common & { readonly type: 'fault'; readonly message: string };

/** A raw line: everything the statistics are made from. */
export type RawLine = RoundLine | CheckLine | FaultLine;

/** A line as it is written, fractions to six digits: more than any clock here knows. */
export function formatLine(line: RawLine): string {
  const shortened = (_name: string, value: unknown) =>
    typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value;
  return `${JSON.stringify(line, shortened)}\n`;
}

/** The lines of a text in NDJSON. Throws on one that is none. */
export function parseLines(text: string): RawLine[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line, index) => {
      try {
        return JSON.parse(line) as RawLine;
      } catch (cause) {
        throw new Error(`line ${index + 1} is no JSON`, { cause });
      }
    });
}
