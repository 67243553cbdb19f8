import * as v from 'valibot';
import { formatIdempotencyKey } from '../protocol/idempotency-key.ts';
import { type LooseInput, plainJson } from './request.ts';

/**
 * What a caller wants done, once. Plain JSON: save it before the first try, and after a crash run what was saved. It holds the
 * request's input and no token; run it under the account it was made for.
 */
export type Intent<Name extends string = string> = {
  readonly version: 1;
  readonly procedure: Name;
  /** Made with the intent and the same through all tries, in all processes. */
  readonly key: string;
  /** RFC 3339: the key's lifetime is counted from here. */
  readonly createdAt: string;
  readonly input: LooseInput;
};

const schema = v.object({
  version: v.literal(1),
  procedure: v.string(),
  key: v.string(),
  createdAt: v.pipe(v.string(), v.isoTimestamp()),
  input: v.record(v.string(), v.unknown()),
});

/** A fresh intent. The input is copied: later changes of it change nothing. Throws a RangeError for a key that no server takes. */
export function createIntent<Name extends string>(
  procedure: Name,
  input: LooseInput,
  key: string | undefined,
  nowMs: number,
): Intent<Name> {
  return {
    version: 1,
    procedure,
    key: formatIdempotencyKey(key ?? crypto.randomUUID()),
    createdAt: new Date(nowMs).toISOString(),
    input: plainJson(input),
  };
}

/** Checks what comes from a store; throws a TypeError that says what is wrong with it. */
export function checkIntent(stored: unknown): Intent {
  const parsed = v.safeParse(schema, stored);
  if (parsed.success) return { ...parsed.output, key: formatIdempotencyKey(parsed.output.key) } as Intent;
  const [issue] = parsed.issues;
  throw new TypeError(`This is no stored intent: ${v.getDotPath(issue) ?? 'it'}: ${issue.message}`);
}
