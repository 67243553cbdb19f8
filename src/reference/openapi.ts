import type * as v from 'valibot';
import type { Procedure } from '../protocol/procedure.ts';
import { headerComponents } from './headers.ts';
import { jsonSchema, querySchema } from './json-schema.ts';
import { codeSchemas, problemSchema } from './problem-schemas.ts';
import { responsesOf } from './responses.ts';

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
      schemas: { Problem: problemSchema, ...usedIn(paths, 'schemas', codeSchemas) },
      headers: usedIn(paths, 'headers', headerComponents),
      parameters: usedIn(paths, 'parameters', parameterComponents),
    },
  };
}

const tagOf = (procedure: Procedure) => procedure.path.split('/')[2] ?? 'root';

function operation(operationId: string, procedure: Procedure): Json {
  return {
    operationId,
    summary: procedure.summary,
    tags: [tagOf(procedure)],
    ...descriptionOf(procedure),
    parameters: parametersOf(procedure),
    ...(procedure.method !== 'GET' && procedure.body !== undefined
      ? {
          requestBody: {
            required: true,
            content: {
              [procedure.mediaType ?? 'application/json']: {
                schema: jsonSchema(procedure.body, 'input'),
                ...(procedure.example === undefined ? {} : { example: procedure.example }),
              },
            },
          },
        }
      : {}),
    responses: responsesOf(procedure),
  };
}

function descriptionOf({ scope, details }: Procedure): Json {
  const sentences = [
    ...(scope === undefined ? [] : [`Needs the scope \`${scope}\`.`]),
    ...(details === undefined ? [] : [details]),
  ];
  return sentences.length === 0 ? {} : { description: sentences.join(' ') };
}

function headOperation(operationId: string, procedure: Procedure): Json {
  const { responses, ...rest } = operation(`head${operationId[0]?.toUpperCase()}${operationId.slice(1)}`, procedure);
  const bodiless = Object.entries(responses as Record<string, Json>).map(([status, response]) => {
    const { content: _, ...head } = response;
    return [status, head];
  });
  return { ...rest, summary: `The head of: ${procedure.summary}`, responses: Object.fromEntries(bodiless) };
}

type ComponentKind = 'headers' | 'parameters' | 'schemas';

const refTo = (kind: ComponentKind, name: string) => `#/components/${kind}/${name}`;

/** The components that something refers to. */
function usedIn(paths: Json, kind: ComponentKind, components: Json): Json {
  const text = JSON.stringify(paths);
  return Object.fromEntries(
    Object.entries(components).filter(([name]) => text.includes(JSON.stringify(refTo(kind, name)))),
  );
}

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
    schema: querySchema(schema as v.GenericSchema),
  }));
  return [...inPath, ...inQuery, ...headerParametersOf(procedure).map((name) => ({ $ref: refTo('parameters', name) }))];
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
