import type { Config } from '../config.ts';
import { parseConfig } from '../config.ts';
import { defaultKeySchema } from '../db/migrate.ts';
import { parseMediaType } from '../http/media-type.ts';
import { problemReply } from '../http/problem-reply.ts';
import type { Reply } from '../http/reply.ts';
import { splitTarget } from '../http/router.ts';
import type { StoredAnswer } from '../idempotency/claims.ts';
import { createKeyed, type Keyed } from '../idempotency/keyed.ts';
import { requestFingerprint } from '../idempotency/request.ts';
import { sweepOnce } from '../idempotency/sweep.ts';
import { startLoop } from '../loop.ts';
import { toProblem } from '../pipeline/faults.ts';
import { grantedWaitMs, keyedReply, waitHeader } from '../pipeline/stored.ts';
import { parseTagList } from '../protocol/entity-tag.ts';
import { type Problem, problem } from '../protocol/errors.ts';
import { parseIdempotencyKey } from '../protocol/idempotency-key.ts';
import { parseJson } from '../protocol/json.ts';
import { parsePrefer } from '../protocol/prefer.ts';
import { parseTraceparent } from '../protocol/trace-context.ts';
import { type Driver, runOf } from './drivers.ts';
import { createOwner, type Owner } from './owner.ts';
import { queriesThrough } from './statement.ts';

/** How the protocol of the key is run in an app that has its own server and its own pool. */
export type KeysOptions = {
  /** The pool that claims and answers are read and written through, a short statement at a time. */
  readonly pool: Driver;
  /** Where `migrateKeys` has made the tables. */
  readonly schema?: string;
  readonly settings?: Partial<Config['idempotency']>;
  /** Told of what went wrong: the cause of a 500, a lease that could not be renewed. Never a body or a key. */
  readonly onError: (message: string, error: unknown) => void;
};

/** A request as its framework has it. */
export type KeyedCall = {
  /** Who is calling, from a verified token and from nowhere else. */
  readonly tenant: string;
  readonly method: string;
  /** Path and query as they were sent, the path of a mounted router included. */
  readonly url: string;
  /** `headersDistinct` of node:http, or the `Headers` of fetch. */
  readonly headers: NodeJS.Dict<string[]> | Headers;
  /** The bytes of the body, unparsed: a parser that rounds numbers or drops members makes two requests one. */
  readonly body?: Uint8Array | undefined;
  /** The work pays for something before its transaction: the claim is flushed to disk first. */
  readonly pays?: boolean;
  /** Aborts when the client is gone; the work goes on all the same. */
  readonly clientGone?: AbortSignal;
};

/** The protocol of the key for handlers of any framework. */
export type Keys = {
  /**
   * Does the work once per key, and answers what there is to answer: the work's answer, the stored one, a 409, a 400. Never
   * rejects: a `Problem` that the work throws is answered as it is and a 4xx frees the key; anything else is a 500 or 503 and
   * keeps the key for the same request.
   */
  handle(request: KeyedCall, work: (owner: Owner) => Promise<StoredAnswer>): Promise<Reply>;
  /** What is known of a key. */
  readonly lookUp: Keyed['lookUp'];
  /** Wakes who waits, gives back what is still held, stops renewing and sweeping. Call it when your server has drained, before the pool ends. */
  stop(): Promise<void>;
};

const idle = new AbortController().signal;

/** Begins to renew leases and to sweep. */
export function createKeys({ pool, schema = defaultKeySchema, onError, ...options }: KeysOptions): Keys {
  const queries = queriesThrough(runOf(pool), schema);
  const settings = { ...parseConfig({}).idempotency, ...options.settings };
  const keyed = createKeyed(queries, settings, { takenOver() {}, fenced() {}, error: onError });
  const sweeping = startLoop(
    async () => {
      const { expired, deleted } = await sweepOnce(queries, settings);
      return { more: expired + deleted > 0 };
    },
    settings.sweepMs,
    (error) => onError('sweeping keys failed', error),
  );

  const run = async (request: KeyedCall, work: (owner: Owner) => Promise<StoredAnswer>): Promise<Reply> => {
    const lines = (name: string) => linesOf(request.headers, name);
    const header = parseIdempotencyKey(lines('idempotency-key'));
    if (header.kind === 'absent') throw problem('idempotency_key_required');
    if (header.kind === 'invalid') throw problem('idempotency_key_invalid', { message: header.reason });
    const ifMatch = parseTagList(lines('if-match'));
    const ifNoneMatch = parseTagList(lines('if-none-match'));
    if (ifMatch.kind === 'invalid' || ifNoneMatch.kind === 'invalid') throw problem('precondition_invalid');
    const body = bodyOf(request.body);
    const mediaType = body === undefined ? undefined : parseMediaType(lines('content-type')[0])?.essence;
    const waitMs = grantedWaitMs(parsePrefer(lines('prefer')).waitSeconds);
    const { tenant, method } = request;
    const bound = { method, ...splitTarget(request.url), mediaType, ifMatch, ifNoneMatch, body };
    const end = await keyed.run(
      {
        tenant,
        key: header.key,
        fingerprint: requestFingerprint(bound),
        durable: request.pays === true,
        waitMs,
        clientGone: request.clientGone ?? idle,
      },
      async (claim, owned, signal) => {
        const { owner, completed } = createOwner(schema, claim, owned, { body, ifMatch, ifNoneMatch, signal });
        const stored = await work(owner);
        if (!completed()) throw new Error('the work must complete its key');
        return stored;
      },
    );
    const waited = end.parked ? waitMs / 1_000 : undefined;
    return 'problem' in end ? refusal(end.problem, lines('traceparent'), waited) : keyedReply(end, waited);
  };

  return {
    async handle(request, work) {
      try {
        return await run(request, work);
      } catch (error) {
        const fault = toProblem(error);
        if (fault.status >= 500) onError('a keyed request failed', fault.cause ?? fault);
        return refusal(fault, linesOf(request.headers, 'traceparent'), undefined);
      }
    },
    lookUp: keyed.lookUp,
    async stop() {
      await Promise.all([sweeping.stop(), keyed.waitingRoom.stop()]);
      const stopping = problem('unavailable', {
        retryAfterMs: 1_000,
        message: 'The server is stopping: send it again.',
      });
      await keyed.leases.releaseAll(stopping).catch((error: unknown) => onError('claims could not be released', error));
      await keyed.leases.stop();
    },
  };
}

function refusal(fault: Problem, traceparent: readonly string[], waitedSeconds: number | undefined): Reply {
  const reply = problemReply(fault, parseTraceparent(traceparent)?.traceId, true);
  return { ...reply, headers: { ...reply.headers, ...waitHeader(waitedSeconds) } };
}

function linesOf(headers: KeyedCall['headers'], name: string): readonly string[] {
  if (!(headers instanceof Headers)) return headers[name] ?? [];
  const value = headers.get(name);
  return value === null ? [] : [value];
}

function bodyOf(bytes: Uint8Array | undefined): unknown {
  if (bytes === undefined) return undefined;
  // A parser that ran before: say so at once, instead of telling requests apart by what it left of them.
  if (!(bytes instanceof Uint8Array)) throw new TypeError('body takes the bytes that were sent, not what was parsed');
  const parsed = parseJson(bytes);
  if (parsed.kind === 'invalid') throw problem('invalid_json', { message: parsed.reason });
  return parsed.value;
}
