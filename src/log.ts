import type { LogLevel } from './config.ts';

const order: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent'];

/** What a line carries besides time, level and message. Never a body, a token or a key. */
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

/** One JSON object a line. */
export type Log = {
  readonly [Level in Exclude<LogLevel, 'silent'>]: (message: string, fields?: LogFields) => void;
};

/** A log that writes lines at `level` and above through `write`. */
export function createLog(level: LogLevel, write: (line: string) => void): Log {
  const at = (lineLevel: LogLevel) => {
    if (order.indexOf(lineLevel) < order.indexOf(level)) return () => {};
    return (message: string, fields: LogFields = {}) =>
      write(`${JSON.stringify({ time: new Date().toISOString(), level: lineLevel, message, ...fields })}\n`);
  };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** An error as log fields: class, message and frames. A message that may quote values is left out, the class and code say enough. */
export function errorFields(error: unknown): LogFields {
  if (!(error instanceof Error)) return { error: typeof error };
  const cause = error.cause instanceof Error ? describe(error.cause) : undefined;
  // The stack begins with the message.
  const frames = error.stack?.split('\n').filter((line) => /^ +at /.test(line));
  return { error: describe(error), cause, stack: frames?.join('\n') };
}

function describe(error: Error): string {
  const { code } = error as { code?: unknown };
  const named = typeof code === 'string' ? `${error.name} ${code}` : error.name;
  return quotesValues(error, code) ? named : `${named}: ${error.message}`;
}

/** Postgres quotes the value in a data exception (class 22), drizzle the parameters of a query, JSON.parse its input. */
function quotesValues(error: Error, code: unknown): boolean {
  return (typeof code === 'string' && /^22...$/.test(code)) || 'params' in error || error instanceof SyntaxError;
}
