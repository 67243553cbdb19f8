import type { Procedure } from '../protocol/procedure.ts';
import { type Answer, attempt, type Missing, type Outcome } from './attempt.ts';
import { type Clock, unlessAborted } from './clock.ts';
import { createDeadline } from './deadline.ts';
import {
  aborted,
  type CallFacts,
  codeOf,
  exhausted,
  findingOf,
  keyLifetimeOver,
  refusal,
  tenantChanged,
} from './failure.ts';
import type { WireRequest } from './request.ts';
import { nextTry, type Patience } from './retry-timing.ts';
import { keepInMemory, keyEndOf, type Performed, success } from './success.ts';
import type { Remembered, TagMemory } from './tag-memory.ts';
import { askToken, isOtherTenant, type TokenSource } from './token.ts';
import { createTraceId, tryHeaders } from './try-headers.ts';

/** What every call of one client shares. */
export type Parts = {
  readonly fetch: typeof globalThis.fetch;
  readonly token: TokenSource;
  readonly memory: TagMemory;
  readonly clock: Clock;
  readonly random: () => number;
};

/** What a hook is told after each try. */
export type AttemptReport = {
  readonly procedure: string;
  /** 1 for the first. */
  readonly attempt: number;
  readonly key: string | undefined;
  readonly traceId: string;
  readonly ms: number;
  /** `answered`: with `status`, and `code` of an error. Otherwise why there is no answer. */
  readonly outcome: 'answered' | 'aborted' | Missing;
  readonly status: number | undefined;
  readonly code: string | undefined;
  /** The wait before the next try, in milliseconds; undefined: this was the last one. */
  readonly retryInMs: number | undefined;
};

/** One call on its way. */
export type Call = {
  readonly name: string;
  readonly procedure: Procedure;
  readonly request: WireRequest;
  readonly key: string | undefined;
  /** The wall clock's time when the key's lifetime ends, as far as is known before the first answer; Infinity without a key. */
  readonly keyEndsMs: number;
  readonly patience: Patience;
  readonly signal: AbortSignal | undefined;
  /** Ask a 412 for the document that is there. */
  readonly wantsCurrent: boolean;
  readonly onAttempt: ((report: AttemptReport) => void) | undefined;
};

/** Sends the request until it is answered for good, or the patience, the key or the caller ends it. Throws the CallErrors. */
export async function perform(parts: Parts, call: Call): Promise<Performed> {
  const { clock, memory } = parts;
  const { request, signal, patience, key } = call;
  const remembers = call.procedure.method === 'GET' && call.procedure.tag === true;
  const startMs = clock.steadyMs();
  const traceId = createTraceId();
  let keyEndsMs = call.keyEndsMs;
  let attempts = 0;
  let canRefresh = typeof parts.token === 'function';
  const facts = (): CallFacts => ({ traceId, attempts, key });
  const budgetLeftMs = () => patience.budgetMs - (clock.steadyMs() - startMs);
  const keyLeftMs = () => keyEndsMs - clock.wallMs();

  let token = await tokenFor(parts, call, facts);
  for (;;) {
    if (keyLeftMs() <= 0) throw keyLifetimeOver(facts());
    attempts += 1;
    const triedMs = clock.steadyMs();
    const remembered = remembers ? memory.find(token, request.url) : undefined;
    const limitMs = Math.min(patience.attemptTimeoutMs, budgetLeftMs());
    const outcome = await tryOnce(parts, call, { token, traceId, remembered, limitMs });
    const report = (retryInMs?: number) =>
      tell(call, { attempt: attempts, traceId, ms: clock.steadyMs() - triedMs, retryInMs, ...summary(outcome) });
    if (outcome.kind === 'aborted') {
      report();
      throw aborted(facts(), signal?.reason);
    }
    keyEndsMs = keyEndOf(outcome.headers, clock.wallMs()) ?? keyEndsMs;

    if (outcome.kind === 'answered') {
      const { status } = outcome;
      if (isOk(status)) {
        report();
        if (remembers) keepInMemory(memory, token, request.url, outcome);
        return success(outcome, facts());
      }
      if (status === 304 && remembered !== undefined) {
        report();
        return success(outcome, facts(), remembered);
      }
      // What is remembered has been refuted: its tag must not be sent again.
      if (status === 412) memory.forget(token, request.url);
      if (status === 401 && canRefresh) {
        canRefresh = false;
        const successor = await successorOf(token, outcome, parts, call, facts).catch((error: unknown) => {
          report();
          throw error;
        });
        if (successor !== token) {
          report(0);
          token = successor;
          continue;
        }
      }
    }

    const standing = { attempts, budgetLeftMs: budgetLeftMs(), keyLeftMs: keyLeftMs() };
    const next = nextTry(findingOf(outcome), standing, patience, parts.random, clock.wallMs());
    report(next.kind === 'wait' ? next.ms : undefined);
    if (next.kind === 'stop') {
      if (next.why === 'key_expired') throw keyLifetimeOver(facts());
      if (next.why === 'final' && outcome.kind === 'answered') throw refusal(outcome, facts());
      throw exhausted(outcome, facts(), clock.wallMs());
    }
    await clock.sleep(next.ms, signal);
    if (signal?.aborted) throw aborted(facts(), signal.reason);
  }
}

/** The token to begin with, or with `rejected` its successor. What the caller's function throws goes to the caller. */
export async function tokenFor(
  parts: Parts,
  call: Pick<Call, 'signal'>,
  facts: () => CallFacts,
  rejected?: string,
): Promise<string> {
  const { signal } = call;
  if (signal?.aborted) throw aborted(facts(), signal.reason);
  try {
    return await unlessAborted(askToken(parts.token, rejected), signal);
  } catch (error) {
    throw signal?.aborted ? aborted(facts(), signal.reason) : error;
  }
}

/** The token after a 401. */
export async function successorOf(
  token: string,
  answer: Answer,
  parts: Parts,
  call: Pick<Call, 'signal'>,
  facts: () => CallFacts,
): Promise<string> {
  const successor = await tokenFor(parts, call, facts, token);
  if (isOtherTenant(token, successor)) throw tenantChanged(answer, facts());
  return successor;
}

type Try = { token: string; traceId: string; remembered: Remembered | undefined; limitMs: number };

async function tryOnce(parts: Parts, call: Call, { remembered, ...who }: Try): Promise<Outcome> {
  const { request, procedure } = call;
  const headers = new Headers({ ...request.headers, ...tryHeaders({ ...call, ...who, remembered: remembered?.tag }) });
  const needsBody = (status: number) => isOk(status) && procedure.answers[status] !== null;
  const deadline = createDeadline(call.signal);
  deadline.within(who.limitMs);
  try {
    return await attempt(parts.fetch, request, headers, deadline, needsBody);
  } finally {
    deadline.release();
  }
}

function isOk(status: number): boolean {
  return status >= 200 && status < 300;
}

function summary(outcome: Outcome): Pick<AttemptReport, 'outcome' | 'status' | 'code'> {
  switch (outcome.kind) {
    case 'answered':
      return { outcome: 'answered', status: outcome.status, code: outcome.status < 400 ? undefined : codeOf(outcome) };
    case 'no_answer':
      return { outcome: outcome.reason, status: undefined, code: undefined };
    case 'aborted':
      return { outcome: 'aborted', status: undefined, code: undefined };
  }
}

/** A hook watches: its fault must not turn an order that was placed into an error. */
function tell(call: Call, report: Omit<AttemptReport, 'procedure' | 'key'>): void {
  try {
    call.onAttempt?.({ procedure: call.name, key: call.key, ...report });
  } catch {
    // The hook's own affair.
  }
}
