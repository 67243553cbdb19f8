import { createHash } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Authenticate } from './auth/tokens.ts';
import type { Database } from './db/pool.ts';
import type { Context, Mounted } from './handler.ts';
import { ClientGone } from './http/body.ts';
import { corsHeaders, preflightHeaders } from './http/cors.ts';
import { problemReply } from './http/problem-reply.ts';
import { type Reply, sendReply } from './http/reply.ts';
import { createRouter, splitTarget } from './http/router.ts';
import { streamReply } from './http/stream.ts';
import type { Keyed, KeyOutcome } from './idempotency/keyed.ts';
import type { Pressure } from './limits/pressure.ts';
import { errorFields, type Log } from './log.ts';
import { toProblem } from './pipeline/faults.ts';
import { executeRead } from './pipeline/read.ts';
import {
  checkBodyHeaders,
  type Head,
  parseHead,
  type ReceiveLimits,
  readJson,
  receiveBytes,
} from './pipeline/receive.ts';
import { type ApiRoute, apiRoute } from './pipeline/route.ts';
import { waitHeader } from './pipeline/stored.ts';
import { parseBody, parseQuery } from './pipeline/validate.ts';
import { executeWrite, KeyRefused, missingCondition, type Spend } from './pipeline/write.ts';
import { problem } from './protocol/errors.ts';
import { formatTraceparent, parseTraceparent } from './protocol/trace-context.ts';
import { random } from './random.ts';

/** A route that needs no token and no database of its own: health, metrics, documents. */
export type OpenRoute = { readonly path: string; readonly answer: (req: IncomingMessage) => Promise<Reply> | Reply };

/** One answered request, as the metrics count it. `route` is the pattern, never the path. */
export type AnswerEnd = {
  readonly route: string;
  readonly status: number;
  readonly ms: number;
  readonly keyOutcome: KeyOutcome;
  /** The route calls a model inside the request. */
  readonly pays: boolean;
};

/** What the pipeline is made of. */
export type AppParts = {
  readonly procedures: readonly Mounted[];
  readonly open?: readonly OpenRoute[];
  readonly authenticate: Authenticate;
  readonly db: Database;
  readonly keyed: Keyed;
  readonly spend: Spend;
  /** How much more work is waiting than is done. */
  readonly pressure: () => Pressure;
  readonly log: Log;
  readonly limits: ReceiveLimits & { readonly corsOrigins: readonly string[] };
  /** Told of every answered request, for the metrics. */
  readonly onAnswer?: (end: AnswerEnd) => void;
};

/** The application: one function that handles a request from top to bottom, and the switches of its end. */
export type App = {
  handle(req: IncomingMessage, res: ServerResponse, expectsContinue: boolean): Promise<void>;
  /** From now on new work is refused with 503 and connections are closed after their answer. */
  drain(): void;
  readonly isDraining: () => boolean;
  /** Event streams that are being read. */
  readonly openStreams: () => number;
  /** Resolves when no request is running. */
  idle(): Promise<void>;
  /** Aborts the signals of what still runs. */
  abort(reason: unknown): void;
};

/** What is learnt of a request on its way, for its log line. */
type Trail = {
  route: string;
  pays: boolean;
  tenant?: string;
  key?: string;
  keyOutcome: KeyOutcome;
  code?: string;
  cause?: unknown;
};

/** Until a draining server's successor is there, in milliseconds. */
const drainRetryMs = 1_000;
/** Until an overloaded server may have caught up, in milliseconds. */
const overloadRetryMs = 2_000;
/** A client that still sends after a refusal is listened to for so long, so that it gets to read the answer. Milliseconds. */
const lingerMs = 1_000;

/** The application over its parts. */
export function createApp(parts: AppParts): App {
  const route = createRouter<ApiRoute | ({ kind: 'open' } & OpenRoute)>([
    ...parts.procedures.map((mounted) => ({
      method: mounted.procedure.method,
      path: mounted.procedure.path,
      target: apiRoute(mounted),
    })),
    ...(parts.open ?? []).map((open) => ({
      method: 'GET',
      path: open.path,
      target: { kind: 'open' as const, ...open },
    })),
  ]);
  /** Aborts when draining begins: streams end and are resumed elsewhere. */
  const leaving = new AbortController();
  // One listener a stream is no leak.
  setMaxListeners(0, leaving.signal);
  /** Aborts when what still runs must end. */
  const stopping = new AbortController();
  let running = 0;
  let streams = 0;
  const onIdle: (() => void)[] = [];

  /** The steps of the contract, in its order. Writes streams itself; everything else is returned. */
  const answer = async (
    req: IncomingMessage,
    res: ServerResponse,
    expectsContinue: boolean,
    trail: Trail,
    trace: { traceId: string; traceparent: string },
  ): Promise<Reply | undefined> => {
    // 2. Route.
    const { path, query } = splitTarget(req.url ?? '');
    const routed = route(req.method ?? '', path);
    if (routed.kind === 'not_found') throw problem('not_found');
    if (routed.kind === 'method_not_allowed') {
      const preflight = answerPreflight(req, routed.allow);
      if (preflight !== undefined) return preflight;
      throw problem('method_not_allowed', { headers: { Allow: routed.allow.join(', ') } });
    }
    const { target, params } = routed;
    if (target.kind === 'open') {
      trail.route = target.path;
      return await target.answer(req);
    }
    const { procedure, handler } = target.mounted;
    trail.route = procedure.path;
    trail.pays = procedure.method !== 'GET' && procedure.pays === true;
    if (leaving.signal.aborted)
      throw problem('unavailable', { retryAfterMs: drainRetryMs, message: 'The server is stopping: send it again.' });
    const pressure = parts.pressure();
    if (pressure === 'severe') throw overloaded();

    // 3. Auth.
    const { tenant, sub, scopes } = await parts.authenticate(req.headersDistinct.authorization);
    trail.tenant = tenant;
    if (procedure.scope !== undefined && !scopes.has(procedure.scope)) throw problem('forbidden');

    // 4. Media type and size. 5. Header syntax, then body syntax.
    const mediaType = checkBodyHeaders(target, req, parts.limits.maxBodyBytes);
    const clientGone = new AbortController();
    res.once('close', () => {
      if (!res.writableFinished) clientGone.abort();
    });
    const context = (head: Head): Context => ({
      tenant,
      sub,
      ...trace,
      ifMatch: head.ifMatch,
      ifNoneMatch: head.ifNoneMatch,
      header: (name) => req.headersDistinct[name] ?? [],
      signal: stopping.signal,
    });
    if (expectsContinue && procedure.method !== 'GET') await refuseEarly(target, req, params, mediaType, context);
    const bytes = await receiveBytes(target, req, res, parts.limits, expectsContinue);
    const head = parseHead(target, req, mediaType);
    if (head.key !== undefined) trail.key = head.key;
    const sentBody = readJson(bytes);

    if (procedure.method === 'GET') {
      const input = { params, query: parseQuery(target, query), body: undefined } as never;
      const reply = await executeRead(procedure, handler as never, input, context(head));
      if ('status' in reply) return reply;
      const headers = withEveryHeader(req, reply.headers, trace.traceId);
      streams += 1;
      await streamReply(res, headers, reply.stream, req.method === 'HEAD', leaving.signal).finally(() => {
        streams -= 1;
      });
      return undefined;
    }

    // 6. to 10. Key, rate limit, preconditions, schema, work.
    const end = await executeWrite(pressure === 'none' ? parts : { ...parts, refusal: overloaded() }, {
      procedure,
      handler: handler as never,
      head,
      path,
      query,
      params,
      parsedQuery: parseQuery(target, query),
      sentBody,
      body: parseBody(procedure, sentBody),
      context: context(head),
      clientGone: clientGone.signal,
    });
    trail.keyOutcome = end.keyOutcome;
    return end.reply;
  };

  /** `Expect: 100-continue`: what the head alone refuses is told before the body is sent. */
  const refuseEarly = async (
    target: ApiRoute,
    req: IncomingMessage,
    params: Readonly<Record<string, string>>,
    mediaType: string | undefined,
    context: (head: Head) => Context,
  ) => {
    const { procedure, handler } = target.mounted;
    if (procedure.method === 'GET') return;
    const head = parseHead(target, req, mediaType);
    const ctx = context(head);
    // A key that is bound may have an answer of its own; whether it is this request's only the body tells.
    if (head.key !== undefined && (await parts.keyed.lookUp(ctx.tenant, head.key)) !== undefined) return;
    const missing = missingCondition(procedure, head);
    if (missing !== undefined) throw missing;
    if ('check' in handler) await handler.check?.({ params }, ctx, 'before_body');
  };

  const answerPreflight = (req: IncomingMessage, allow: readonly string[]): Reply | undefined => {
    const origin = originOf(req);
    if (req.method !== 'OPTIONS' || origin === undefined || parts.limits.corsOrigins.length === 0) return undefined;
    return {
      status: 204,
      headers: preflightHeaders(parts.limits.corsOrigins, origin, allow),
      body: null,
    };
  };

  /** Any fault as a reply; what a key refused names its outcome in the trail. */
  const refusalReply = (error: unknown, trail: Trail, traceId: string, isKeyed: boolean): Reply => {
    const refused = error instanceof KeyRefused ? error : undefined;
    const fault = refused?.refusal.problem ?? toProblem(error);
    if (refused !== undefined) trail.keyOutcome = refused.refusal.outcome;
    trail.code = fault.code;
    // A refusal under load has no cause, and needs no second line.
    if (fault.status >= 500) trail.cause = fault.cause ?? (fault.code === 'internal' ? fault : undefined);
    const reply = problemReply(fault, traceId, isKeyed);
    return { ...reply, headers: { ...reply.headers, ...waitHeader(refused?.waitSeconds) } };
  };

  return {
    async handle(req, res, expectsContinue) {
      const startedMs = performance.now();
      running += 1;
      // 1. Trace.
      const parent = parseTraceparent(req.headersDistinct.traceparent ?? []);
      const traceId = parent?.traceId ?? random(16).toString('hex');
      const traceparent = formatTraceparent({
        traceId,
        parentId: random(8).toString('hex'),
        flags: parent?.flags ?? 1,
      });
      const trail: Trail = { route: 'none', pays: false, keyOutcome: 'none' };
      let status = 0;
      try {
        let reply: Reply | undefined;
        try {
          reply = await answer(req, res, expectsContinue, trail, { traceId, traceparent });
        } catch (error) {
          if (error instanceof ClientGone) {
            trail.code = 'client_gone';
            res.destroy();
            return;
          }
          reply = refusalReply(
            error,
            trail,
            traceId,
            req.method !== 'GET' && req.method !== 'HEAD' && trail.route !== 'none',
          );
        }
        if (reply !== undefined) send(req, res, reply, traceId);
        status = reply?.status ?? res.statusCode;
      } catch (error) {
        // Only a defect of the pipeline itself ends here; the connection is of no more use.
        parts.log.error('request failed outside the pipeline', { trace_id: traceId, ...errorFields(error) });
        res.destroy();
      } finally {
        running -= 1;
        if (running === 0) for (const resolve of onIdle.splice(0)) resolve();
        logRequest(req, trail, status, performance.now() - startedMs, traceId);
      }
    },
    drain: () => leaving.abort(),
    isDraining: () => leaving.signal.aborted,
    openStreams: () => streams,
    idle: () => (running === 0 ? Promise.resolve() : new Promise((resolve) => onIdle.push(resolve))),
    abort: (reason) => stopping.abort(reason),
  };

  function withEveryHeader(req: IncomingMessage, headers: Reply['headers'], traceId: string): Record<string, string> {
    return {
      ...headers,
      ...corsHeaders(parts.limits.corsOrigins, originOf(req), headers.Vary),
      'X-Trace-Id': traceId,
    };
  }

  function send(req: IncomingMessage, res: ServerResponse, reply: Reply, traceId: string): void {
    const closes = leaving.signal.aborted || reply.status === 408 || reply.status === 413;
    const headers = withEveryHeader(req, reply.headers, traceId);
    if (closes) headers.Connection = 'close';
    sendReply(res, { ...reply, headers }, req.method === 'HEAD');
    if (reply.status === 408 || reply.status === 413) linger(req);
  }

  function logRequest(req: IncomingMessage, trail: Trail, status: number, ms: number, traceId: string): void {
    const { route: pattern, pays, tenant, key, keyOutcome, code, cause } = trail;
    parts.onAnswer?.({ route: pattern, status, ms, keyOutcome, pays });
    parts.log.info('request', {
      method: req.method,
      route: pattern,
      status,
      ms: Math.round(ms * 10) / 10,
      tenant,
      trace_id: traceId,
      key_outcome: keyOutcome,
      key: key === undefined ? undefined : createHash('sha256').update(`${tenant} ${key}`).digest('hex').slice(0, 16),
      code,
    });
    if (cause !== undefined) parts.log.error('request failed', { trace_id: traceId, ...errorFields(cause) });
  }
}

/** Of the two forms that Node makes of a head, each when it is first asked for, only `headersDistinct` is used here. */
function originOf(req: IncomingMessage): string | undefined {
  return req.headersDistinct.origin?.join(', ');
}

function overloaded() {
  return problem('unavailable', {
    retryAfterMs: overloadRetryMs,
    message: 'The server is overloaded: send it again after Retry-After.',
  });
}

/** Discards what the client still sends for a moment: closing at once would reset the connection before the answer is read. */
function linger(req: IncomingMessage): void {
  req.resume();
  setTimeout(() => req.socket.destroy(), lingerMs).unref();
}
