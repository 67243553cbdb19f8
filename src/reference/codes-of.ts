import type { ErrorCode } from '../protocol/errors.ts';
import type { Procedure } from '../protocol/procedure.ts';

/** What the HTTP layer refuses before it knows what is asked for; such an answer has no trace id. */
const doorCodes = [
  'bad_request',
  'request_timeout',
  'expectation_failed',
  'headers_too_large',
] as const satisfies readonly ErrorCode[];

/** Whether the HTTP layer itself says so. */
export const isOfDoor = (code: ErrorCode) => (doorCodes as readonly ErrorCode[]).includes(code);

/** What any procedure can answer. */
export const commonCodes = [
  ...doorCodes,
  'unauthenticated',
  'internal',
  'unavailable',
] as const satisfies readonly ErrorCode[];

/** Codes of addresses that are no procedure's. */
export const strayCodes = ['not_found', 'method_not_allowed'] as const satisfies readonly ErrorCode[];

/** Every error code that a procedure can answer, as its flags have it; what its own work adds stands in `problems`. */
export function codesOf(procedure: Procedure): readonly ErrorCode[] {
  const codes: ErrorCode[] = [...commonCodes];
  if (procedure.scope !== undefined) codes.push('forbidden');
  if (procedure.path.includes('{')) codes.push('not_found');
  if (procedure.query !== undefined) codes.push('invalid_query');
  if (procedure.query !== undefined && 'after' in procedure.query) codes.push('invalid_cursor');
  if (procedure.method === 'GET') {
    codes.push('unexpected_body');
    if (procedure.tag) codes.push('precondition_failed');
  } else {
    codes.push(...(procedure.body === undefined ? (['unexpected_body'] as const) : bodyCodes));
    codes.push('precondition_invalid', 'idempotency_key_invalid', ...keyCodes);
    if (procedure.key === 'required') codes.push('idempotency_key_required');
    if (procedure.condition !== undefined) codes.push('precondition_required', 'precondition_failed');
    if (procedure.spends) codes.push('rate_limited');
  }
  return [...new Set([...codes, ...(procedure.problems ?? [])])];
}

const bodyCodes = [
  'unsupported_media_type',
  'body_too_large',
  'invalid_json',
  'invalid_body',
] as const satisfies readonly ErrorCode[];

const keyCodes = [
  'idempotency_key_reused',
  'request_in_progress',
  'idempotency_key_expired',
] as const satisfies readonly ErrorCode[];
