import { STATUS_CODES } from 'node:http';
import { type ErrorCode, errorCodes, errorEntry, isRetriedBySdks } from '../protocol/errors.ts';
import type { Procedure } from '../protocol/procedure.ts';
import { codesOf } from './codes-of.ts';
import { jsonSchema } from './json-schema.ts';

type Json = Record<string, unknown>;

/** The OpenAPI 3.1 document of a contract: every operation, header, code and schema, from the table alone. */
export function openApi(contract: Readonly<Record<string, Procedure>>, version: string): Json {
  const paths: Record<string, Json> = {};
  for (const [operationId, procedure] of Object.entries(contract)) {
    const path = paths[procedure.path] ?? {};
    paths[procedure.path] = path;
    path[procedure.method.toLowerCase()] = operation(operationId, procedure);
    if (procedure.method === 'GET') path.head = headOperation(operationId, procedure);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'retry-safe',
      version,
      summary: 'The HTTP edge of an AI app, where retry is a safe action.',
      description:
        'Every POST takes an Idempotency-Key: one intent runs once and its first answer is replayed. Reads carry an ETag; writes to documents take If-Match. Clients switch on `code`, never on text.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'This server.' }],
    security: [{ bearer: [] }],
    tags: [...new Set(Object.values(contract).map(tagOf))].map((name) => ({
      name,
      description: `Everything under /v1/${name}.`,
    })),
    paths,
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: 'A JWT with `tenant`, `sub` and `exp`; some routes need a scope.',
        },
      },
      schemas: { Problem: problemSchema },
      headers: headerComponents,
      parameters: parameterComponents,
    },
  };
}

const tagOf = (procedure: Procedure) => procedure.path.split('/')[2] ?? 'root';

function operation(operationId: string, procedure: Procedure): Json {
  return {
    operationId,
    summary: procedure.summary,
    tags: [tagOf(procedure)],
    ...(procedure.scope === undefined ? {} : { description: `Needs the scope \`${procedure.scope}\`.` }),
    parameters: parametersOf(procedure),
    ...(procedure.method !== 'GET' && procedure.body !== undefined
      ? {
          requestBody: {
            required: true,
            content: { [procedure.mediaType ?? 'application/json']: { schema: jsonSchema(procedure.body, 'input') } },
          },
        }
      : {}),
    responses: responsesOf(procedure),
  };
}

function headOperation(operationId: string, procedure: Procedure): Json {
  const { responses, ...rest } = operation(`head${operationId[0]?.toUpperCase()}${operationId.slice(1)}`, procedure);
  const bodiless = Object.entries(responses as Record<string, Json>).map(([status, response]) => {
    const { content: _, ...head } = response;
    return [status, head];
  });
  return { ...rest, summary: `The head of: ${procedure.summary}`, responses: Object.fromEntries(bodiless) };
}

const ref = (kind: 'headers' | 'parameters' | 'schemas', name: string) => ({ $ref: `#/components/${kind}/${name}` });

function parametersOf(procedure: Procedure): Json[] {
  const inPath = [...procedure.path.matchAll(/\{([a-z_]+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const inQuery = Object.entries(procedure.query ?? {}).map(([name, schema]) => ({
    name,
    in: 'query',
    required: false,
    schema: jsonSchema(schema as never, 'input'),
  }));
  return [...inPath, ...inQuery, ...headerParametersOf(procedure).map((name) => ref('parameters', name))];
}

function headerParametersOf(procedure: Procedure): string[] {
  if (procedure.method === 'GET') {
    if (procedure.stream) return ['LastEventId', 'Traceparent'];
    return procedure.tag ? ['IfNoneMatch', 'IfMatch', 'Traceparent'] : ['Traceparent'];
  }
  const key = procedure.key === 'required' ? 'IdempotencyKeyRequired' : 'IdempotencyKey';
  const condition =
    procedure.condition === undefined
      ? []
      : ['IfMatch', ...(procedure.condition === 'if_match_or_create' ? ['IfNoneMatch'] : [])];
  return [key, ...condition, 'Prefer', 'Traceparent'];
}

function responsesOf(procedure: Procedure): Record<string, Json> {
  const responses: Record<string, Json> = {};
  for (const [status, schema] of Object.entries(procedure.answers)) {
    const headers = ['XTraceId', ...(procedure.answerHeaders ?? []).map(headerName), ...successHeaders(procedure)];
    const media = procedure.method === 'GET' && procedure.stream ? 'text/event-stream' : 'application/json';
    responses[status] = {
      description: STATUS_CODES[status] ?? status,
      headers: headerRefs(headers),
      ...(schema === null ? {} : { content: { [media]: { schema: jsonSchema(schema, 'output') } } }),
    };
  }
  if (procedure.method === 'GET' && procedure.tag) {
    responses[304] = { description: 'Not Modified', headers: headerRefs(['XTraceId', 'ETag', 'CacheControl', 'Vary']) };
  }
  for (const [status, codes] of byStatus(codesOf(procedure))) responses[status] = problemResponse(status, codes);
  return responses;
}

function successHeaders(procedure: Procedure): string[] {
  if (procedure.method === 'GET') return procedure.tag ? ['ETag', 'CacheControl', 'Vary'] : ['CacheControl'];
  return ['CacheControl', 'IdempotentReplayed', 'IdempotencyExpires', 'PreferenceApplied'];
}

function byStatus(codes: readonly ErrorCode[]): Map<number, ErrorCode[]> {
  const groups = new Map<number, ErrorCode[]>();
  for (const code of codes) {
    const { status } = errorEntry(code);
    groups.set(status, [...(groups.get(status) ?? []), code]);
  }
  return new Map([...groups].sort(([a], [b]) => a - b));
}

function problemResponse(status: number, codes: readonly ErrorCode[]): Json {
  const headers = ['XTraceId', 'CacheControl'];
  if (status === 401) headers.push('WwwAuthenticate');
  if (status === 412) headers.push('ETag');
  if (codes.some((code) => errorEntry(code).retry === 'wait')) headers.push('RetryAfter', 'RetryAfterMs');
  if (isRetriedBySdks(status)) headers.push('XShouldRetry');
  return {
    description: codes.map((code) => `\`${code}\`: ${errorEntry(code).when}`).join(' '),
    headers: headerRefs(headers),
    content: {
      'application/problem+json': {
        schema: { allOf: [ref('schemas', 'Problem'), { type: 'object', properties: { code: { enum: codes } } }] },
      },
    },
  };
}

const headerName = (name: string) => name.replaceAll('-', '');
const headerRefs = (names: readonly string[]) =>
  Object.fromEntries([...new Set(names)].map((name) => [wireNames[name] ?? name, ref('headers', name)]));

const wireNames: Readonly<Record<string, string>> = {
  XTraceId: 'X-Trace-Id',
  CacheControl: 'Cache-Control',
  IdempotentReplayed: 'Idempotent-Replayed',
  IdempotencyExpires: 'Idempotency-Expires',
  PreferenceApplied: 'Preference-Applied',
  RetryAfter: 'Retry-After',
  RetryAfterMs: 'retry-after-ms',
  XShouldRetry: 'x-should-retry',
  WwwAuthenticate: 'WWW-Authenticate',
};

const textHeader = (description: string, schema: Json = { type: 'string' }) => ({ description, schema });

const headerComponents = {
  XTraceId: textHeader('The trace id of this request, also in every error body.', {
    type: 'string',
    pattern: '^[0-9a-f]{32}$',
  }),
  ETag: textHeader('The version of what was answered; after a 412 the current one.'),
  CacheControl: textHeader('`private, no-cache` for what has a tag, else `no-store`.'),
  Vary: textHeader('`Authorization`: every tenant has its own.'),
  Location: textHeader('Where the thing that was made can be read.'),
  Link: textHeader('Related resources, such as the events of a job.'),
  IdempotentReplayed: textHeader('`true` on a stored answer, `false` on a first execution.', {
    type: 'string',
    enum: ['true', 'false'],
  }),
  IdempotencyExpires: textHeader('Until when the answer is kept (RFC 3339).', { type: 'string', format: 'date-time' }),
  PreferenceApplied: textHeader('`wait=N`: the request was parked, for N seconds at most.'),
  RetryAfter: textHeader('Seconds until a retry may help.', { type: 'integer', minimum: 1, maximum: 60 }),
  RetryAfterMs: textHeader('The same in milliseconds.', { type: 'integer', minimum: 1 }),
  XShouldRetry: textHeader('`false`: a retry cannot help although the status is one that SDKs retry.', {
    type: 'string',
    enum: ['false'],
  }),
  WwwAuthenticate: textHeader('The scheme that is asked for (RFC 6750).'),
};

const parameter = (name: string, description: string, required: boolean, schema: Json = { type: 'string' }) => ({
  name,
  in: 'header',
  required,
  description,
  schema,
});

const keySchema = { type: 'string', minLength: 1, maxLength: 257 };
const parameterComponents = {
  IdempotencyKeyRequired: parameter(
    'Idempotency-Key',
    'Made once per intent, repeated unchanged on every retry: 1 to 255 visible ASCII characters, with or without quotes around them.',
    true,
    keySchema,
  ),
  IdempotencyKey: parameter(
    'Idempotency-Key',
    'As on a POST; without it the request relies on its precondition alone.',
    false,
    keySchema,
  ),
  IfMatch: parameter('If-Match', 'A list of entity tags, or `*`.', false),
  IfNoneMatch: parameter(
    'If-None-Match',
    'On a read a list of entity tags: 304 if one is current. On a PUT `*`: create only.',
    false,
  ),
  Prefer: parameter(
    'Prefer',
    '`wait=N` parks a duplicate for up to N seconds (30 at most); `return=representation` adds the document to a 412.',
    false,
  ),
  LastEventId: parameter('Last-Event-ID', 'The last event that was seen; the larger of it and `after` wins.', false, {
    type: 'string',
  }),
  Traceparent: parameter('traceparent', 'W3C trace context.', false),
};

const problemSchema = {
  type: 'object',
  description: 'An error (RFC 9457).',
  required: ['type', 'status', 'code', 'message', 'trace_id'],
  properties: {
    type: { type: 'string', description: 'The entry of the code in the reference.' },
    status: { type: 'integer' },
    code: { type: 'string', enum: Object.keys(errorCodes) },
    message: { type: 'string', description: 'One sentence that says what to do.' },
    trace_id: { type: 'string' },
    key_action: {
      type: 'string',
      enum: ['reuse', 'rotate', 'reconcile'],
      description: 'On keyed routes: what to do with the key.',
    },
    issues: {
      type: 'array',
      items: {
        type: 'object',
        required: ['path', 'message'],
        properties: { path: { type: 'string' }, message: { type: 'string' } },
      },
    },
    differs: {
      type: 'array',
      items: { type: 'string', enum: ['method', 'path', 'query', 'media_type', 'if_match', 'if_none_match', 'body'] },
    },
    current_etag: { type: 'string' },
    current_version: { type: 'integer' },
    changed_at: { type: 'string', format: 'date-time' },
    changed_by: { type: 'string' },
    current: { type: 'object', description: 'The document as it is now.' },
    draft: { type: 'string', description: 'What the model wrote before it was known that the document had moved on.' },
  },
};
