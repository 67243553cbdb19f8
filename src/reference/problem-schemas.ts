import { type ErrorCode, errorCodes, errorEntry } from '../protocol/errors.ts';
import { isOfDoor } from './codes-of.ts';

type Json = Record<string, unknown>;

/** The members of errors by name. */
const members = {
  type: { type: 'string', format: 'uri-reference', description: 'The entry of the code in the reference.' },
  status: { type: 'integer' },
  code: { type: 'string', enum: Object.keys(errorCodes) },
  message: { type: 'string', description: 'One sentence that says what to do.' },
  trace_id: {
    type: 'string',
    pattern: '^[0-9a-f]{32}$',
    description: 'As in `X-Trace-Id`; absent from what the HTTP layer refuses before it reads the head.',
  },
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
};

/** Members that an error of this code always has, beside those of every error. */
const membersOf: Partial<Record<ErrorCode, readonly (keyof typeof members)[]>> = {
  invalid_query: ['issues'],
  invalid_body: ['issues'],
  idempotency_key_reused: ['differs'],
  precondition_failed: ['current_etag'],
};

const nameOf = (code: ErrorCode) =>
  code
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
const refOf = (code: ErrorCode) => `#/components/schemas/${nameOf(code)}`;

/** What all errors have in common. */
export const problemSchema: Json = {
  type: 'object',
  description: 'An error (RFC 9457).',
  required: ['type', 'status', 'code', 'message'],
  properties: members,
};

/** One schema for each code, by its name in `components.schemas`. */
export const codeSchemas: Json = Object.fromEntries(
  (Object.keys(errorCodes) as ErrorCode[]).map((code) => [nameOf(code), schemaOf(code)]),
);

function schemaOf(code: ErrorCode): Json {
  const { status, when } = errorEntry(code);
  const always = [...(isOfDoor(code) ? [] : (['trace_id'] as const)), ...(membersOf[code] ?? [])];
  return {
    description: when,
    allOf: [
      { $ref: '#/components/schemas/Problem' },
      {
        type: 'object',
        required: ['code', 'status', ...always],
        properties: {
          code: { const: code },
          status: { const: status },
          ...Object.fromEntries(always.map((name) => [name, members[name]])),
        },
      },
    ],
  };
}

/** The schema of an error that has one of these codes. */
export function problemSchemaOf(codes: readonly ErrorCode[]): Json {
  const [first] = codes;
  if (codes.length === 1 && first !== undefined) return { $ref: refOf(first) };
  return {
    oneOf: codes.map((code) => ({ $ref: refOf(code) })),
    discriminator: { propertyName: 'code', mapping: Object.fromEntries(codes.map((code) => [code, refOf(code)])) },
  };
}
