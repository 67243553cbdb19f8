import type { ErrorCode, KeyAction } from '../protocol/errors.ts';

/** Codes that the client itself gives, where no server of ours has spoken. */
export type ClientCode =
  | 'no_answer'
  | 'key_lifetime_over'
  | 'aborted'
  | 'merge_conflict'
  | 'tenant_changed'
  | 'unreadable_stream'
  | 'foreign_answer';

/** What every failure of a call tells. */
export type FailureFacts = {
  readonly code: ErrorCode | ClientCode;
  /** Status of the last answer; undefined when there was none. */
  readonly status: number | undefined;
  /** The trace of this call: the same for all its tries, and in the server's log. */
  readonly traceId: string;
  /** Tries that were sent. */
  readonly attempts: number;
  /** What to do with the key; undefined for reads. */
  readonly keyAction: KeyAction | undefined;
  readonly key: string | undefined;
};

/** The common part of all failures of a call; `catch` one of its classes to know what to do. */
export abstract class CallError extends Error implements FailureFacts {
  readonly code: ErrorCode | ClientCode;
  readonly status: number | undefined;
  readonly traceId: string;
  readonly attempts: number;
  readonly keyAction: KeyAction | undefined;
  readonly key: string | undefined;

  constructor(message: string, facts: FailureFacts, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.code = facts.code;
    this.status = facts.status;
    this.traceId = facts.traceId;
    this.attempts = facts.attempts;
    this.keyAction = facts.keyAction;
    this.key = facts.key;
  }
}

/** Members of an error answer; which there are beside `code` and `message` depends on the code (`issues`, `differs`, `draft` …). */
export type ProblemBody = { readonly [member: string]: unknown };

/** The server has refused, and the same request sent again would be refused again. */
export class RefusedError extends CallError {
  readonly problem: ProblemBody;

  constructor(message: string, facts: FailureFacts, problem: ProblemBody) {
    super(message, facts);
    this.problem = problem;
  }
}

/** 412: the resource is at another version. Nothing was written; read it, apply the change again and send the new tag under a new key. */
export class PreconditionFailedError extends RefusedError {
  /** The tag of the version that is there, when the server told it. */
  readonly currentTag: string | undefined;

  constructor(message: string, facts: FailureFacts, problem: ProblemBody, currentTag: string | undefined) {
    super(message, facts, problem);
    this.currentTag = currentTag;
  }
}

/** 409: the key is bound to another request (`rotate`) or its answer is no longer kept (`reconcile`). Nothing was run. */
export class KeyUnusableError extends RefusedError {}

/** The patience was used up on answers that ask to come again later. `key_action: reuse`: run the same intent again later. */
export class UnavailableError extends CallError {
  /** The wait the last answer asked for, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, facts: FailureFacts, retryAfterMs: number | undefined) {
    super(message, facts);
    this.retryAfterMs = retryAfterMs;
  }
}

/** The patience was used up without an answer: whether the request has run is not known. Run the same intent again to find out. */
export class NoAnswerError extends CallError {}

/** The key's lifetime is over, or would be before the next try: the server may have forgotten it, so it was not sent (again). Look at the resource. */
export class KeyLifetimeError extends CallError {}

/** The caller's signal ended the call; whether a write has run is not known. `cause` is the signal's reason, `name` is `AbortError`. */
export class AbortedError extends CallError {
  constructor(message: string, facts: FailureFacts, cause: unknown) {
    super(message, facts, cause);
    this.name = 'AbortError';
  }
}

/** The stream of a job can't be read: its events make no sense, or it did not get ahead for as long as the patience lasts. */
export class StreamError extends CallError {}

/** Others were faster in every round of an update: nothing of `mine` was written. */
export class MergeConflict<Resource = unknown, Change = unknown> extends CallError {
  /** The version that the last change was made from. */
  readonly base: Resource;
  /** What the change made of it. */
  readonly mine: Change;
  /** The version that is there now. */
  readonly theirs: Resource;

  constructor(message: string, facts: FailureFacts, versions: { base: Resource; mine: Change; theirs: Resource }) {
    super(message, facts);
    this.base = versions.base;
    this.mine = versions.mine;
    this.theirs = versions.theirs;
  }
}
