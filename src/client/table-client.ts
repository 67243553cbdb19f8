import type { IncomingEvent } from '../protocol/event-parser.ts';
import type { Procedure } from '../protocol/procedure.ts';
import type {
  Answered,
  CallArguments,
  CallableName,
  CallInput,
  ProcedureTable,
  StreamName,
  WriteName,
} from './call-types.ts';
import { type Clock, systemClock } from './clock.ts';
import { defaultSilenceMs, follow } from './follow.ts';
import { checkIntent, createIntent, type Intent } from './intent.ts';
import { type AttemptReport, type Parts, perform } from './perform.ts';
import { encodeRequest, type LooseInput } from './request.ts';
import { defaultPatience, type Patience } from './retry-timing.ts';
import { createTagMemory, defaultMemoryLimits, type MemoryLimits } from './tag-memory.ts';
import type { TokenSource } from './token.ts';

/** What a client is made from. */
export type ClientOptions = {
  /** Where the server is; a path is kept: `https://host/api`. */
  readonly baseUrl: string;
  readonly token: TokenSource;
  readonly patience?: Partial<Patience>;
  /** How long the server keeps a key's answer (`IDEMPOTENCY_TTL_S`), counted from the intent. Default: 24 h, in milliseconds. */
  readonly keyLifetimeMs?: number;
  readonly memory?: Partial<MemoryLimits>;
  /** Told of every try of every call; what it throws is ignored. */
  readonly onAttempt?: (report: AttemptReport) => void;
  /** Replaces the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
  readonly clock?: Clock;
  readonly random?: () => number;
};

/** What one run may say besides. */
export type RunOptions = {
  readonly signal?: AbortSignal | undefined;
  readonly patience?: Partial<Patience>;
  /** A 412 then carries the document that is there, as `error.problem.current`. */
  readonly wantsCurrent?: boolean;
  readonly onAttempt?: (report: AttemptReport) => void;
};

/** What one call may say besides. `key` replaces the one that would be made; reads have none. */
export type CallOptions = RunOptions & { readonly key?: string };

/** What a stream may say besides. */
export type StreamOptions<Event = IncomingEvent> = Pick<RunOptions, 'signal' | 'patience'> & {
  /** The id to go on behind. */
  readonly lastEventId?: string;
  /** A connection without a byte for so long is given up; default 45 s, three times what our server lets pass. Milliseconds. */
  readonly silenceMs?: number;
  /** True for an event after which nothing comes; without it the stream ends at the server's 204. */
  readonly isLast?: (event: IncomingEvent) => boolean;
  /** What is handed out for an event; undefined: nothing. Default: the event. What it throws ends the stream as a StreamError. */
  readonly read?: (event: IncomingEvent) => Event | undefined;
};

/** A client of a table of procedures. */
export type TableClient<T extends ProcedureTable> = {
  /** Calls a procedure, as often as it takes. A write gets one key for all its tries. Throws the CallErrors. */
  call<Name extends CallableName<T>>(
    name: Name,
    ...args: CallArguments<T[Name], CallOptions>
  ): Promise<Answered<T[Name]>>;
  /** Makes what is to be done once: save it, then `run` it, after a crash again. */
  intent<Name extends WriteName<T>>(
    name: Name,
    ...args: CallArguments<T[Name], { readonly key?: string }>
  ): Intent<Name>;
  /** Does an intent, or learns what became of it. Throws the CallErrors, and a TypeError for what is no intent of this table. */
  run<Name extends WriteName<T>>(intent: Intent<Name>, options?: RunOptions): Promise<Answered<T[Name]>>;
  /** The events of a stream, over as many connections as it takes. */
  stream<Name extends StreamName<T>, Event = IncomingEvent>(
    name: Name,
    input: CallInput<T[Name]>,
    options?: StreamOptions<Event>,
  ): AsyncGenerator<Event, void, undefined>;
};

/** How long a server keeps answers unless it is told otherwise. Milliseconds. */
const defaultKeyLifetimeMs = 86_400_000;

/** A client of any table of procedures. Throws a TypeError for a base URL that is none. */
export function createTableClient<T extends ProcedureTable>(table: T, options: ClientOptions): TableClient<T> {
  const baseUrl = checkBaseUrl(options.baseUrl);
  const patience = { ...defaultPatience, ...options.patience };
  const lifetimeMs = options.keyLifetimeMs ?? defaultKeyLifetimeMs;
  const clock = options.clock ?? systemClock;
  const parts: Parts = {
    // Called by its name: browsers refuse a `fetch` that was taken off its window.
    fetch: options.fetch ?? ((input, init) => globalThis.fetch(input, init)),
    token: options.token,
    memory: createTagMemory({ ...defaultMemoryLimits, ...options.memory }),
    clock,
    random: options.random ?? Math.random,
  };

  const procedureOf = (name: string): Procedure => {
    const procedure = Object.hasOwn(table, name) ? table[name] : undefined;
    if (procedure === undefined) throw new TypeError(`There is no procedure ${name}.`);
    return procedure;
  };
  const send = (
    name: string,
    input: LooseInput,
    run: RunOptions,
    key?: string,
    keyEndsMs = Number.POSITIVE_INFINITY,
  ) => {
    const procedure = procedureOf(name);
    return perform(parts, {
      name,
      procedure,
      request: encodeRequest(baseUrl, procedure, input),
      key,
      keyEndsMs,
      patience: { ...patience, ...run.patience },
      signal: run.signal,
      wantsCurrent: run.wantsCurrent ?? false,
      onAttempt: run.onAttempt ?? options.onAttempt,
    });
  };
  const runIntent = async (stored: unknown, run: RunOptions = {}) => {
    const { procedure, key, createdAt, input } = checkIntent(stored);
    if (procedureOf(procedure).method === 'GET') throw new TypeError(`${procedure} only reads: it takes no intent.`);
    return await send(procedure, input, run, key, Date.parse(createdAt) + lifetimeMs);
  };
  const makeIntent = (name: string, input: LooseInput = {}, { key }: { readonly key?: string } = {}) => {
    // What can't be sent is refused now, not when it is run.
    encodeRequest(baseUrl, procedureOf(name), input);
    return createIntent(name, input, key, clock.wallMs());
  };
  const client = {
    async call(name: string, input: LooseInput = {}, run: CallOptions = {}) {
      if (procedureOf(name).method === 'GET') return await send(name, input, run);
      return await runIntent(makeIntent(name, input, run), run);
    },
    intent: makeIntent,
    run: runIntent,
    stream(name: string, input: LooseInput, stream: StreamOptions<unknown> = {}) {
      return follow(parts, {
        request: encodeRequest(baseUrl, procedureOf(name), input),
        patience: { ...patience, ...stream.patience },
        signal: stream.signal,
        silenceMs: stream.silenceMs ?? defaultSilenceMs,
        lastEventId: stream.lastEventId ?? '',
        isLast: stream.isLast ?? (() => false),
        read: stream.read ?? ((event) => event),
      });
    },
  };
  // Typed by the table: inside, every procedure is handled by what its entry says.
  return client as unknown as TableClient<T>;
}

function checkBaseUrl(baseUrl: string): string {
  const { protocol, username, search, hash } = new URL(baseUrl);
  if (!/^https?:$/.test(protocol) || username !== '' || search !== '' || hash !== '') {
    throw new TypeError(`The base URL must be http(s) without user, query and fragment, not ${baseUrl}.`);
  }
  return baseUrl.replace(/\/+$/, '');
}
