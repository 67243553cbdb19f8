import { type AttemptReport, CallError } from '../../../client/index.ts';

/** What one click adds when credits are out, in micros. */
export const topUpMicros = 5_000_000;

/** A failure in a sentence for the status line: what came, and what is to be done. */
export function wordsOf(error: unknown): string {
  if (!(error instanceof CallError)) return `This page has a fault: ${String(error)}`;
  return error.status === undefined ? error.message : `${error.status} ${error.code}: ${error.message}`;
}

/** A try after which another one follows, in a sentence; undefined for the last one. */
export function wordsOfTry({ outcome, status, retryInMs }: AttemptReport): string | undefined {
  if (retryInMs === undefined) return undefined;
  if (outcome !== 'answered') return 'No answer, tries again with the same key.';
  if (status === 409) return '409: it is still running under this key. Asks again.';
  return `Answer ${status}, tries again with the same key.`;
}
