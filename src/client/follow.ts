import { createEventParser, type EventParser, type IncomingEvent } from '../protocol/event-parser.ts';
import { type Outcome, readAnswer, send } from './attempt.ts';
import { createDeadline, type Deadline } from './deadline.ts';
import { StreamError } from './errors.ts';
import { aborted, type CallFacts, exhausted, findingOf, ownFacts, refusal } from './failure.ts';
import { type Parts, successorOf, tokenFor } from './perform.ts';
import type { WireRequest } from './request.ts';
import { nextTry, type Patience } from './retry-timing.ts';
import { bearer, createTraceId } from './try-headers.ts';

/** One stream that is read to its end, over as many connections as it takes. */
export type Following<Event> = {
  readonly request: WireRequest;
  /** Bounds each outage: the time without an event between two connections that worked. */
  readonly patience: Patience;
  readonly signal: AbortSignal | undefined;
  /** A connection without a byte for so many milliseconds is given up. */
  readonly silenceMs: number;
  /** The id to go on behind; '' for the beginning. */
  readonly lastEventId: string;
  /** True for an event after which nothing comes. */
  readonly isLast: (event: IncomingEvent) => boolean;
  /** What is handed out for an event; undefined: nothing. What it throws ends the stream as a StreamError. */
  readonly read: (event: IncomingEvent) => Event | undefined;
};

/** The server says something every 15 s: three times as long without a byte, and the connection is taken for dead. */
export const defaultSilenceMs = 45_000;

/** Upper bound of the wait before connecting again, unless the server says otherwise (`retry:`). Milliseconds. */
const defaultRetryMs = 2_000;

/**
 * The events, one connection after another, each begun behind the last event that was handed out. Reads on only when the next
 * event is asked for. Ends after the last event, or at a 204; throws RefusedError (410 too), UnavailableError, NoAnswerError,
 * StreamError, AbortedError.
 */
export async function* follow<Event>(
  parts: Parts,
  following: Following<Event>,
): AsyncGenerator<Event, void, undefined> {
  const { clock } = parts;
  const { patience, signal } = following;
  const traceId = createTraceId();
  let { lastEventId } = following;
  let retryMs = defaultRetryMs;
  let connections = 0;
  let failures = 0;
  let outageMs = clock.steadyMs();
  let canRefresh = typeof parts.token === 'function';
  const facts = (): CallFacts => ({ traceId, attempts: connections, key: undefined });

  let token = await tokenFor(parts, following, facts);
  for (;;) {
    connections += 1;
    const deadline = createDeadline(signal);
    const openedMs = clock.steadyMs();
    let outcome: Outcome;
    let waitMs: number | undefined;
    try {
      const headers = new Headers({ accept: 'text/event-stream', ...bearer(token, traceId) });
      if (lastEventId !== '') headers.set('last-event-id', lastEventId);
      const opened = await open(parts, following, headers, deadline);
      if (opened.kind === 'stream') {
        canRefresh = typeof parts.token === 'function';
        const parser = createEventParser();
        let worked = false;
        for await (const event of eventsOf(opened.body, parser, deadline, following.silenceMs, facts)) {
          if (signal?.aborted) break;
          worked = true;
          if (event.id !== '') lastEventId = event.id;
          const made = make(following, event, facts);
          if (made !== undefined) yield made;
          if (following.isLast(event)) return;
        }
        retryMs = parser.retryMs ?? retryMs;
        if (worked || clock.steadyMs() - openedMs >= patience.attemptTimeoutMs) {
          failures = 0;
          outageMs = clock.steadyMs();
          waitMs = Math.floor(parts.random() * retryMs);
        }
        outcome = signal?.aborted ? { kind: 'aborted' } : { kind: 'no_answer', reason: 'cut' };
      } else {
        outcome = opened;
      }
    } finally {
      deadline.abort();
      deadline.release();
    }
    if (outcome.kind === 'aborted') throw aborted(facts(), signal?.reason);
    if (outcome.kind === 'answered') {
      if (outcome.status === 204) return;
      if (outcome.status === 401 && canRefresh) {
        canRefresh = false;
        const successor = await successorOf(token, outcome, parts, following, facts);
        if (successor !== token) {
          token = successor;
          continue;
        }
      }
    }
    waitMs ??= waitAfter(outcome, ++failures, outageMs);
    await clock.sleep(waitMs, signal);
    if (signal?.aborted) throw aborted(facts(), signal.reason);
  }

  function waitAfter(outcome: Exclude<Outcome, { kind: 'aborted' }>, attempts: number, sinceMs: number): number {
    const budgetLeftMs = patience.budgetMs - (clock.steadyMs() - sinceMs);
    const standing = { attempts, budgetLeftMs, keyLeftMs: Number.POSITIVE_INFINITY };
    const next = nextTry(findingOf(outcome), standing, patience, parts.random, clock.wallMs());
    if (next.kind === 'wait') return next.ms;
    if (next.why === 'final' && outcome.kind === 'answered') throw refusal(outcome, facts());
    throw exhausted(outcome, facts(), clock.wallMs());
  }
}

type Opened = Outcome | { readonly kind: 'stream'; readonly body: ReadableStream<Uint8Array> };

async function open(
  parts: Parts,
  { request, patience }: Pick<Following<unknown>, 'request' | 'patience'>,
  headers: Headers,
  deadline: Deadline,
): Promise<Opened> {
  deadline.within(patience.attemptTimeoutMs);
  try {
    const response = await send(parts.fetch, request, headers, deadline.signal);
    const isStream = /^text\/event-stream\b/i.test(response.headers.get('content-type') ?? '');
    if (response.status !== 200 || !isStream || response.body === null) return await readAnswer(response, () => false);
    return { kind: 'stream', body: response.body };
  } catch (cause) {
    if (deadline.isTimedOut()) return { kind: 'no_answer', reason: 'timed_out', cause };
    return deadline.signal.aborted ? { kind: 'aborted' } : { kind: 'no_answer', reason: 'connection', cause };
  }
}

/** The events of one connection; ends when it ends, in whatever way. An event that was cut is not one. */
async function* eventsOf(
  body: ReadableStream<Uint8Array>,
  parser: EventParser,
  deadline: Deadline,
  silenceMs: number,
  facts: () => CallFacts,
): AsyncGenerator<IncomingEvent, void, undefined> {
  const reader = body.getReader();
  for (;;) {
    // Only the server's silence counts, not the time the reader takes for an event.
    deadline.within(silenceMs);
    const chunk = await reader.read().catch(() => undefined);
    deadline.pause();
    if (chunk === undefined || chunk.done) return;
    yield* parse(parser, chunk.value, facts);
  }
}

function parse(parser: EventParser, chunk: Uint8Array, facts: () => CallFacts): IncomingEvent[] {
  try {
    return parser.push(chunk);
  } catch (cause) {
    throw unreadable('An event of the stream is too large.', facts(), cause);
  }
}

function make<Event>({ read }: Following<Event>, event: IncomingEvent, facts: () => CallFacts): Event | undefined {
  try {
    return read(event);
  } catch (cause) {
    throw unreadable('An event of the stream is not what it should be.', facts(), cause);
  }
}

/** A stream whose events make no sense; connecting again would show the same ones. */
function unreadable(message: string, facts: CallFacts, cause?: unknown): StreamError {
  return new StreamError(message, ownFacts('unreadable_stream', facts, 'reuse'), cause);
}
