/** The client: one intent has one key, through all tries and restarts; a tag is never sent twice after it was refused. */

export type { ErrorCode, KeyAction } from '../protocol/errors.ts';
export type { Answered, AnswerFacts, CallInput, ProcedureTable } from './call-types.ts';
export {
  type Client,
  createClient,
  type Doc,
  type DocChange,
  type JobEventOptions,
  type UpdateOptions,
} from './client.ts';
export { type Clock, systemClock } from './clock.ts';
export { deriveKey } from './derive-key.ts';
export {
  AbortedError,
  CallError,
  type ClientCode,
  KeyLifetimeError,
  KeyUnusableError,
  MergeConflict,
  NoAnswerError,
  PreconditionFailedError,
  type ProblemBody,
  RefusedError,
  StreamError,
  UnavailableError,
} from './errors.ts';
export type { Intent } from './intent.ts';
export type { JobEvent } from './job-events.ts';
export type { AttemptReport } from './perform.ts';
export { defaultPatience, type Patience } from './retry-timing.ts';
export {
  type CallOptions,
  type ClientOptions,
  createTableClient,
  type RunOptions,
  type StreamOptions,
  type TableClient,
} from './table-client.ts';
export { defaultMemoryLimits, type MemoryLimits } from './tag-memory.ts';
export type { TokenSource } from './token.ts';
export { type UpdateSteps, updateCurrent, type Version } from './update.ts';
