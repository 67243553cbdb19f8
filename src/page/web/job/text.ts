import { CallError } from '../../../client/index.ts';

/** What one click adds when credits are out, in micros. */
export const topUpMicros = 5_000_000;

/** A failure in a sentence for the status line: what came, and what is to be done. */
export function wordsOf(error: unknown): string {
  if (!(error instanceof CallError)) return `This page has a fault: ${String(error)}`;
  return error.status === undefined ? error.message : `${error.status} ${error.code}: ${error.message}`;
}
