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

/** An error as log fields: class, message and stack. */
export function errorFields(error: unknown): LogFields {
  if (!(error instanceof Error)) return { error: String(error) };
  const cause = error.cause instanceof Error ? `${error.cause.name}: ${error.cause.message}` : undefined;
  return { error: `${error.name}: ${error.message}`, cause, stack: error.stack };
}
