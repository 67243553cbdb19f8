import { connect } from 'node:net';
import fc from 'fast-check';
import { contract } from '../../src/protocol/contract.ts';
import type { Procedure } from '../../src/protocol/procedure.ts';
import { exampleOf } from '../../src/reference/api-page.ts';
import { jsonSchema } from '../../src/reference/json-schema.ts';

/** What a run of random requests came to. */
export type FuzzReport = {
  /** Answers by status; `closed`: the connection ended without one. */
  readonly counts: Record<string, number>;
  /** Requests that were answered 500, or not within the limit, as they were sent. */
  readonly faults: string[];
  readonly slowestMs: number;
};

const answerLimitMs = 10_000;
/** Requests under way at once. */
const lanes = 8;

const procedures: readonly Procedure[] = Object.values(contract);

/** Bytes a header value may hold on the wire, and some it may not. */
const headerBytes = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.string({ unit: 'binary', maxLength: 40 }).map((text) => Buffer.from(text).toString('latin1')),
  fc.constantFrom('*', '""', '"x"', 'W/"x"', 'w/"x"', '"a,b"', '"*"', ',,,', ' \t', 'W/', '"unterminated'),
);
const withoutLines = (value: string) => value.replace(/[\r\n]/g, '');

const segment = fc.oneof(
  fc.constantFrom(
    'a',
    'doc-1',
    'ord_0',
    'job_00000000000000000000000000000000',
    '..',
    '.',
    '%00',
    '%2e%2e',
    '%',
    '%ff',
    '%2F',
  ),
  fc.string({ maxLength: 12 }).map((text) => encodeURIComponent(text.toWellFormed())),
  fc.string({ maxLength: 12 }).map((text) => text.replace(/[\s]/g, '_')),
);

const jsonBody = fc.oneof(
  fc.json({ maxDepth: 5 }),
  fc.constantFrom(
    '',
    '{',
    'null',
    '[]',
    '{}',
    '{"a":1,"a":2}',
    '[1e400]',
    '{"cents":9007199254740993}',
    '['.repeat(200),
    '"\ud800"',
    '\ufeff{}',
  ),
  fc.string({ unit: 'binary', maxLength: 60 }),
);

function tameHead(procedure: Procedure, key: string, forgetsCondition: boolean) {
  const mediaType = procedure.method === 'GET' ? undefined : procedure.mediaType;
  return {
    method: undefined,
    hasToken: true,
    key,
    ifMatch: procedure.method === 'GET' || forgetsCondition ? undefined : '*',
    ifNoneMatch: undefined,
    contentType: mediaType ?? 'application/json',
    ...(procedure.method === 'GET' || procedure.body === undefined ? { body: undefined, isValidBody: false } : {}),
  };
}

/** One request as bytes, made from a procedure of the contract and then bent. */
function requestOf(token: string): fc.Arbitrary<string> {
  return fc
    .record({
      procedure: fc.constantFrom(...procedures),
      method: fc.option(fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'BREW'), {
        freq: 4,
        nil: undefined,
      }),
      segments: fc.array(segment, { minLength: 4, maxLength: 4 }),
      query: fc.option(
        fc.array(
          fc.tuple(
            fc.constantFrom('limit', 'after', 'status', 'x'),
            fc.oneof(fc.string({ maxLength: 20 }), fc.integer().map(String)),
          ),
          { maxLength: 3 },
        ),
        { nil: undefined },
      ),
      key: fc.option(headerBytes, { freq: 3, nil: undefined }),
      ifMatch: fc.option(headerBytes, { freq: 2, nil: undefined }),
      ifNoneMatch: fc.option(headerBytes, { freq: 2, nil: undefined }),
      prefer: fc.option(headerBytes, { freq: 4, nil: undefined }),
      lastEventId: fc.option(headerBytes, { freq: 4, nil: undefined }),
      contentType: fc.oneof(
        fc.constantFrom('application/json', 'application/merge-patch+json', 'application/json; charset=latin1', ''),
        headerBytes,
      ),
      hasToken: fc.integer({ min: 0, max: 9 }).map((n) => n > 0),
      body: fc.oneof({ weight: 2, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: jsonBody }),
      isValidBody: fc.boolean(),
      /** Half of the requests have the head that their procedure asks for, so that what lies behind the door is met too. */
      isTame: fc.boolean(),
      freshKey: fc.uuid(),
      /** A tame writer that forgets its condition: rare enough in bent requests that a thousand may hold none. */
      forgetsCondition: fc.integer({ min: 0, max: 3 }).map((n) => n === 0),
    })
    .map((bent) => {
      const { procedure } = bent;
      const parts = bent.isTame ? { ...bent, ...tameHead(procedure, bent.freshKey, bent.forgetsCondition) } : bent;
      let index = 0;
      const path = procedure.path.replace(/\{[a-z_]+\}/g, () => parts.segments[index++] as string);
      const query =
        parts.query === undefined
          ? ''
          : `?${parts.query.map(([name, value]) => `${name}=${encodeURIComponent(value.toWellFormed())}`).join('&')}`;
      const schema = procedure.method !== 'GET' ? procedure.body : undefined;
      const valid =
        schema !== undefined && parts.isValidBody ? JSON.stringify(exampleOf(jsonSchema(schema, 'input'))) : undefined;
      const body = parts.body ?? valid;
      const bytes = body === undefined ? '' : Buffer.from(body).toString('latin1');
      const header = (name: string, value: string | undefined) =>
        value === undefined ? [] : [`${name}: ${withoutLines(value)}`];
      const lines = [
        `${parts.method ?? procedure.method} ${path}${query} HTTP/1.1`,
        'Host: fuzz',
        'Connection: close',
        ...(parts.hasToken ? [`Authorization: Bearer ${token}`] : []),
        ...header('Idempotency-Key', parts.key),
        ...header('If-Match', parts.ifMatch),
        ...header('If-None-Match', parts.ifNoneMatch),
        ...header('Prefer', parts.prefer?.replace(/wait/i, 'w')),
        ...header('Last-Event-ID', parts.lastEventId),
        ...(body === undefined
          ? []
          : [`Content-Type: ${withoutLines(parts.contentType)}`, `Content-Length: ${bytes.length}`]),
      ];
      return `${lines.join('\r\n')}\r\n\r\n${bytes}`;
    });
}

/** Sends `runs` random requests, some at a time, and looks at every answer. The same seed sends the same requests. */
export async function fuzz(
  url: string,
  token: string,
  options: { runs: number; seed: number; onProgress?: (done: number) => void },
): Promise<FuzzReport> {
  const { hostname, port } = new URL(url);
  const counts: Record<string, number> = {};
  const faults: string[] = [];
  let slowestMs = 0;
  let done = 0;
  const batch = 500;
  for (let start = 0; start < options.runs; start += batch) {
    const requests = fc.sample(requestOf(token), {
      numRuns: Math.min(batch, options.runs - start),
      seed: options.seed + start,
    });
    const lane = async () => {
      for (let request = requests.pop(); request !== undefined; request = requests.pop()) {
        const startedMs = performance.now();
        const status = await send(hostname, Number(port), request);
        const ms = performance.now() - startedMs;
        slowestMs = Math.max(slowestMs, ms);
        counts[status] = (counts[status] ?? 0) + 1;
        if (status === '500' || status === 'hang') faults.push(request);
        done += 1;
      }
      options.onProgress?.(done);
    };
    await Promise.all(Array.from({ length: lanes }, lane));
  }
  return { counts, faults, slowestMs };
}

/** The status of the answer, read to its end; streams are left after their head. */
function send(host: string, port: number, request: string): Promise<string> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect(port, host);
    const end = (status: string) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(status);
    };
    const timer = setTimeout(() => end('hang'), answerLimitMs);
    const status = () => /^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 'closed';
    socket.setEncoding('latin1');
    socket.on('data', (chunk: string) => {
      answer += chunk;
      if (answer.includes('text/event-stream')) end(status());
    });
    socket.on('error', () => end(status()));
    socket.on('close', () => end(status()));
    socket.write(Buffer.from(request, 'latin1'));
  });
}
