import { STATUS_CODES } from 'node:http';
import { type ErrorCode, errorEntry, isRetriedBySdks } from '../protocol/errors.ts';
import type { Procedure } from '../protocol/procedure.ts';
import { codesOf, isOfDoor } from './codes-of.ts';
import { type HeaderName, headerRefs } from './headers.ts';
import { jsonSchema } from './json-schema.ts';
import { problemSchemaOf } from './problem-schemas.ts';

type Json = Record<string, unknown>;

/** The header names of an answer: whether it is always there. */
type Always = Partial<Record<HeaderName, boolean>>;

/** The `responses` of a procedure: its success statuses, 304, and each error status with its codes. */
export function responsesOf(procedure: Procedure): Record<string, Json> {
  const responses: Record<string, Json> = {};
  for (const [status, schema] of Object.entries(procedure.answers)) {
    responses[status] = {
      description: STATUS_CODES[status] ?? status,
      headers: headerRefs({ 'X-Trace-Id': true, 'Cache-Control': true, ...successHeaders(procedure, status) }),
      ...contentOf(procedure, status, schema),
    };
  }
  if (procedure.method === 'GET' && procedure.tag) {
    responses[304] = {
      description: 'Not Modified',
      headers: headerRefs({ 'X-Trace-Id': true, 'Cache-Control': true, ETag: true, Vary: true }),
    };
  }
  for (const [status, codes] of byStatus(codesOf(procedure))) {
    responses[status] = problemResponse(procedure, status, codes);
  }
  return responses;
}

/** A stream answers 200 with events; its other statuses have no body. */
const isStream = (procedure: Procedure, status: string) =>
  procedure.method === 'GET' && procedure.stream === true && status === '200';

function contentOf(procedure: Procedure, status: string, schema: Parameters<typeof jsonSchema>[0] | null): Json {
  if (isStream(procedure, status)) {
    const description =
      'Server-sent events: `retry` first, then `id`, `event` and one line of JSON as `data` for each.';
    return { content: { 'text/event-stream': { schema: { type: 'string', description } } } };
  }
  return schema === null ? {} : { content: { 'application/json': { schema: jsonSchema(schema, 'output') } } };
}

function successHeaders(procedure: Procedure, status: string): Always {
  if (isStream(procedure, status)) return { 'X-Accel-Buffering': true };
  if (procedure.method === 'GET') return procedure.tag ? { ETag: true, Vary: true } : {};
  const own = Object.fromEntries((procedure.answerHeaders ?? []).map((name) => [name, true])) as Always;
  const isKeyed = procedure.key === 'required';
  return { ...own, 'Idempotent-Replayed': isKeyed, 'Idempotency-Expires': isKeyed, 'Preference-Applied': false };
}

function byStatus(codes: readonly ErrorCode[]): Map<number, ErrorCode[]> {
  const groups = new Map<number, ErrorCode[]>();
  for (const code of codes) {
    const { status } = errorEntry(code);
    groups.set(status, [...(groups.get(status) ?? []), code]);
  }
  return new Map([...groups].sort(([a], [b]) => a - b));
}

function problemResponse(procedure: Procedure, status: number, codes: readonly ErrorCode[]): Json {
  return {
    description: codes.map((code) => `\`${code}\`: ${errorEntry(code).when}`).join(' '),
    headers: headerRefs(problemHeaders(procedure, status, codes)),
    content: { 'application/problem+json': { schema: problemSchemaOf(codes) } },
  };
}

function problemHeaders(procedure: Procedure, status: number, codes: readonly ErrorCode[]): Always {
  const waits = codes.filter((code) => errorEntry(code).retry === 'wait').length;
  const everyWaits = waits === codes.length;
  const isWrite = procedure.method !== 'GET';
  // What a model wrote is paid, so a refusal that carries it is stored like a success.
  const isStored = isWrite && procedure.pays === true && (status === 404 || status === 412);
  return {
    'X-Trace-Id': !codes.some(isOfDoor),
    'Cache-Control': true,
    ...(status === 401 ? { 'WWW-Authenticate': true } : {}),
    ...(status === 412 ? { ETag: true } : {}),
    ...(status === 415 ? { [procedure.method === 'PATCH' ? 'Accept-Patch' : 'Accept']: true } : {}),
    ...(waits > 0 ? { 'Retry-After': everyWaits, 'retry-after-ms': everyWaits } : {}),
    ...(isRetriedBySdks(status) ? { 'x-should-retry': false } : {}),
    ...(isStored ? { 'Idempotent-Replayed': false, 'Idempotency-Expires': false } : {}),
    ...(isStored || (isWrite && status === 409) ? { 'Preference-Applied': false } : {}),
  };
}
