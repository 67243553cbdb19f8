import { type ErrorCode, errorCodes, type KeyAction, keyActionOf } from '../protocol/errors.ts';
import { isRecord } from '../protocol/json-object.ts';
import type { Answer, Outcome } from './attempt.ts';
import {
  AbortedError,
  type CallError,
  type FailureFacts,
  KeyLifetimeError,
  KeyUnusableError,
  NoAnswerError,
  PreconditionFailedError,
  type ProblemBody,
  RefusedError,
  UnavailableError,
} from './errors.ts';
import { askedWaitMs, type Finding } from './retry-timing.ts';

/** What a failure tells of its call, whatever its kind. */
export type CallFacts = { readonly traceId: string; readonly attempts: number; readonly key: string | undefined };

/** An outcome as retry timing asks for it. */
export function findingOf(outcome: Exclude<Outcome, { kind: 'aborted' }>): Finding {
  if (outcome.kind === 'no_answer') return { kind: 'no_answer' };
  const { status, headers } = outcome;
  return {
    kind: 'answered',
    status,
    code: codeOf(outcome),
    shouldRetry: headers.get('x-should-retry'),
    retryAfterMs: headers.get('retry-after-ms'),
    retryAfter: headers.get('retry-after'),
    date: headers.get('date'),
  };
}

/** The code an error answer carries. A later server may know more codes than this table. */
export function codeOf(answer: Answer): ErrorCode | 'foreign_answer' {
  const code = isRecord(answer.value) ? answer.value.code : undefined;
  return typeof code === 'string' ? (code as ErrorCode) : 'foreign_answer';
}

/** The answer that ends a call, as an error: retries cannot help. */
export function refusal(answer: Answer, facts: CallFacts): RefusedError {
  const problem: ProblemBody = isRecord(answer.value) ? answer.value : {};
  const failure = answerFacts(answer, facts);
  const message = messageOf(answer, problem);
  if (answer.status === 412) {
    const tag = answer.headers.get('etag') ?? problem.current_etag;
    return new PreconditionFailedError(message, failure, problem, typeof tag === 'string' ? tag : undefined);
  }
  const isKeys = failure.code === 'idempotency_key_reused' || failure.code === 'idempotency_key_expired';
  return new (isKeys ? KeyUnusableError : RefusedError)(message, failure, problem);
}

/** The patience ended with this outcome as the last. */
export function exhausted(outcome: Exclude<Outcome, { kind: 'aborted' }>, facts: CallFacts, nowMs: number): CallError {
  if (outcome.kind === 'answered') {
    const problem = isRecord(outcome.value) ? outcome.value : {};
    const wait = askedWaitMs(findingOf(outcome), nowMs);
    return new UnavailableError(messageOf(outcome, problem), answerFacts(outcome, facts), wait);
  }
  const message = 'No whole answer came in time: run the same intent again to learn what became of it.';
  return new NoAnswerError(message, ownFacts('no_answer', facts, 'reuse'), outcome.cause ?? outcome.reason);
}

/** The caller's signal ended the call. */
export function aborted(facts: CallFacts, reason: unknown): AbortedError {
  return new AbortedError('The call was ended by its signal.', ownFacts('aborted', facts, 'reuse'), reason);
}

/** The key's lifetime ended before an answer was there. */
export function keyLifetimeOver(facts: CallFacts): KeyLifetimeError {
  const message = 'The lifetime of this key is over: look at the resource before you do it under a new key.';
  return new KeyLifetimeError(message, ownFacts('key_lifetime_over', facts, 'reconcile'));
}

/** The token's successor belongs to somebody else: the request is not sent under it. */
export function tenantChanged(answer: Answer, facts: CallFacts): RefusedError {
  const message = 'The token now names another tenant: run the intent under the account it was made for.';
  return new RefusedError(message, { ...answerFacts(answer, facts), code: 'tenant_changed' }, {});
}

/** Facts of a failure that no answer told. */
export function ownFacts(code: FailureFacts['code'], facts: CallFacts, keyAction: KeyAction): FailureFacts {
  return { code, status: undefined, ...facts, keyAction: facts.key === undefined ? undefined : keyAction };
}

function answerFacts(answer: Answer, facts: CallFacts): FailureFacts {
  const code = codeOf(answer);
  const traceId = answer.headers.get('x-trace-id') ?? facts.traceId;
  return {
    ...facts,
    code,
    traceId,
    status: answer.status,
    keyAction: facts.key && keyAction(answer, code),
  } as FailureFacts;
}

function keyAction(answer: Answer, code: string): KeyAction {
  const told = isRecord(answer.value) ? answer.value.key_action : undefined;
  if (told === 'reuse' || told === 'rotate' || told === 'reconcile') return told;
  return Object.hasOwn(errorCodes, code) ? keyActionOf(code as ErrorCode) : 'reuse';
}

function messageOf(answer: Answer, problem: ProblemBody): string {
  return typeof problem.message === 'string' ? problem.message : `The answer was ${answer.status} and says no more.`;
}
