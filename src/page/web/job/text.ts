import { CallError } from '../../../client/index.ts';

/** A failure in a sentence for the status line: what came, and what is to be done. */
export function wordsOf(error: unknown): string {
  if (!(error instanceof CallError)) return `This page has a fault: ${String(error)}`;
  return error.status === undefined ? error.message : `${error.status} ${error.code}: ${error.message}`;
}
