/*
 * Postgres' error codes by name (PostgreSQL manual, appendix A), and the questions the code asks about an error. Errors are
 * told apart by code alone, never by text: the text is in the server's language.
 */

export const NOT_NULL_VIOLATION = '23502';
export const FOREIGN_KEY_VIOLATION = '23503';
export const UNIQUE_VIOLATION = '23505';
export const CHECK_VIOLATION = '23514';
export const NUMERIC_VALUE_OUT_OF_RANGE = '22003';
export const PROGRAM_LIMIT_EXCEEDED = '54000';
export const SERIALIZATION_FAILURE = '40001';
export const DEADLOCK_DETECTED = '40P01';
export const LOCK_NOT_AVAILABLE = '55P03';
export const QUERY_CANCELED = '57014';
export const ADMIN_SHUTDOWN = '57P01';
export const CRASH_SHUTDOWN = '57P02';
export const CANNOT_CONNECT_NOW = '57P03';
export const DATABASE_DROPPED = '57P04';
export const IDLE_SESSION_TIMEOUT = '57P05';
export const IDLE_IN_TRANSACTION_SESSION_TIMEOUT = '25P03';
export const TRANSACTION_TIMEOUT = '25P04';
export const IN_FAILED_SQL_TRANSACTION = '25P02';
export const READ_ONLY_SQL_TRANSACTION = '25006';
export const TOO_MANY_CONNECTIONS = '53300';
export const INVALID_PASSWORD = '28P01';
export const UNDEFINED_TABLE = '42P01';
export const INVALID_CATALOG_NAME = '3D000';

/** After these the session is of no more use: it is gone, or its server takes no writes (a demoted primary). */
const sessionEnds: ReadonlySet<string> = new Set([
  ADMIN_SHUTDOWN,
  CRASH_SHUTDOWN,
  CANNOT_CONNECT_NOW,
  DATABASE_DROPPED,
  IDLE_SESSION_TIMEOUT,
  IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
  TRANSACTION_TIMEOUT,
  READ_ONLY_SQL_TRANSACTION,
  TOO_MANY_CONNECTIONS,
]);

/** Codes of the driver and of the operating system that mean the connection is gone or never was. */
const connectionCode = /^(CONNECT|ECONN|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|ENOENT)/;

/** The SQLSTATE of an error or of whatever it wraps (drizzle wraps the driver's error as `cause`); undefined without one. */
export function sqlstateOf(error: unknown): string | undefined {
  const code = codeOf(error);
  // No class begins with E, but the system's own EPIPE and EPERM have five letters too.
  return code !== undefined && /^[0-9A-DF-Z][0-9A-Z]{4}$/.test(code) ? code : undefined;
}

/** The named constraint that a 23xxx error is about. */
export function constraintOf(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    const name = (at as { constraint_name?: unknown }).constraint_name;
    if (typeof name === 'string') return name;
  }
  return undefined;
}

/** Whether an error *of the driver* ended the session it came from, or is about a session that never was. */
export function isSessionLost(error: unknown): boolean {
  const code = codeOf(error);
  return code !== undefined && (endsSession(code) || connectionCode.test(code));
}

const endsSession = (sqlstate: string) => sqlstate.startsWith('08') || sessionEnds.has(sqlstate);

/** Whether the server is up but could not do the statement for want of time or means (cancelled, disk full, memory, too busy). */
export function isRefused(error: unknown): boolean {
  const code = sqlstateOf(error);
  return code !== undefined && (code === QUERY_CANCELED || code.startsWith('53'));
}

/** Whether the server said that it is away or overloaded: nothing is wrong with the statement, and it may work later. */
export function isUnavailable(error: unknown): boolean {
  const code = sqlstateOf(error);
  return code !== undefined && (endsSession(code) || isRefused(error));
}

/** Whether the same work may succeed if it is simply done again: the database was away, or another transaction was in the way. */
export function isRetryable(error: unknown): boolean {
  const code = sqlstateOf(error);
  return (
    code === SERIALIZATION_FAILURE || code === DEADLOCK_DETECTED || code === LOCK_NOT_AVAILABLE || isUnavailable(error)
  );
}

function codeOf(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    const code = (at as { code?: unknown }).code;
    if (typeof code === 'string') return code;
  }
  return undefined;
}
