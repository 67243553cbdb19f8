/** The embedded Postgres can't be used; the message is one sentence that says what to do, then what Postgres said, if it did. */
export class EmbeddedPostgresError extends Error {
  override readonly name = 'EmbeddedPostgresError';
}

/** Last lines of Postgres' log that are worth showing. */
const shownLines = 15;

/** The end of a log, indented, to be put behind a sentence. */
export function tailOf(log: string): string {
  const lines = log.trim().split('\n').slice(-shownLines);
  return lines[0] === '' ? '' : `\n${lines.map((line) => `    ${line}`).join('\n')}`;
}
