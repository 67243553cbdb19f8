/** The library: a server of your own procedures, the key in a server that is there already, and the pieces by themselves. */

// A server of your own.

export type { OpenRoute } from './app.ts';
export type { Principal } from './auth/principal.ts';
export { type Authenticate, type AuthSettings, createAuthenticate, signToken } from './auth/tokens.ts';
export { type Config, ConfigError, parseConfig } from './config.ts';
export { migrateKeys, UnsupportedServerError } from './db/migrate.ts';
export { openOrm } from './db/orm.ts';
export { type Database, type DatabaseOptions, type Orm, openDatabase, type Tx } from './db/pool.ts';
export { DatabaseUnavailable } from './db/unavailable.ts';
export {
  type Answer,
  type Context,
  type Mounted,
  mount,
  type ReadHandler,
  type Statement,
  type StatementHandler,
  type TransactionHandler,
  type WriteContext,
} from './handler.ts';
export type { Core, Hosted, HostSettings } from './host.ts';
export { createLog, type Log } from './log.ts';
export {
  type Input,
  type Procedure,
  procedure,
  type ReadProcedure,
  type WriteProcedure,
} from './protocol/procedure.ts';
export { type ServerOptions, type ServerParts, startServer } from './start-server.ts';

// The key in a server that is there already.

export type { Driver, DrizzleDriver, PgDriver, PostgresJsDriver, Run } from './guest/drivers.ts';
export { createKeys, type KeyedCall, type Keys, type KeysOptions } from './guest/keys.ts';
export type { Owner } from './guest/owner.ts';
export { type Reply, sendReply } from './http/reply.ts';
export type { KeyRow, StoredAnswer } from './idempotency/claims.ts';
export { type BoundRequest, requestFingerprint } from './idempotency/request.ts';

// Versions and their tags.

export { atVersion } from './db/at-version.ts';
export { type EntityTag, formatTag, matchesTag, parseTagList, type TagList } from './protocol/entity-tag.ts';
export { judgeConditions, type Verdict } from './protocol/preconditions.ts';
export { allowsVersion, type VersionCondition } from './protocol/version-condition.ts';
export { createPager, listBinding, type Page, type Pager, pageAnswer } from './resources/page.ts';
export { conditionOf, staleVersion, tagOf } from './versioned.ts';
export { type TableWithVersions, type VersionedTable, versionedTable } from './versioned-table.ts';

// Errors.

export { problemReply } from './http/problem-reply.ts';
export { toProblem } from './pipeline/faults.ts';
export { bodyAs } from './pipeline/validate.ts';
export {
  type ErrorCode,
  errorCodes,
  type KeyAction,
  Problem,
  type ProblemOptions,
  problem,
} from './protocol/errors.ts';
export { errorsHtml } from './reference/errors-page.ts';
