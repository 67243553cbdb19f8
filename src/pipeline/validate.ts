import * as v from 'valibot';
import { type Problem, problem } from '../protocol/errors.ts';
import type { WriteProcedure } from '../protocol/procedure.ts';
import { relativeOperationHint } from '../protocol/relative-operation.ts';
import type { ApiRoute } from './route.ts';

/** Issues told at most: enough to correct a body, not enough to amplify one. */
const maxIssues = 20;
/** Longest path and message told of one issue, in characters: they may repeat what the client sent. */
const maxIssueText = 200;

/** The parsed query, or 400 `invalid_query`. A declared name that comes twice is refused, unknown names are ignored. */
export function parseQuery(route: ApiRoute, query: string): Record<string, unknown> {
  if (route.querySchema === undefined) return {};
  const search = new URLSearchParams(query);
  const declared = Object.keys(route.mounted.procedure.query ?? {});
  const given: Record<string, string> = {};
  for (const name of declared) {
    const values = search.getAll(name);
    if (values.length > 1) throw problem('invalid_query', { members: { issues: [issue(name, 'was sent twice')] } });
    if (values[0] !== undefined) given[name] = values[0];
  }
  const parsed = v.safeParse(route.querySchema, given);
  if (parsed.success) return parsed.output as Record<string, unknown>;
  throw problem('invalid_query', { members: { issues: issuesOf(parsed.issues) } });
}

/** The parsed body, or a 422 `invalid_body` to be thrown when its turn comes. A patch that is refused gets a hint. */
export function parseBody(
  procedure: WriteProcedure,
  value: unknown,
): { readonly body: unknown } | { readonly refusal: Problem } {
  if (procedure.body === undefined) return { body: undefined };
  const judged = judgeBody(procedure.body, value);
  if (judged.issues === undefined) return judged;
  const { issues } = judged;
  const hint = procedure.mediaType === 'application/merge-patch+json' ? relativeOperationHint(value) : undefined;
  return { refusal: problem('invalid_body', { ...(hint && { message: hint }), members: { issues } }) };
}

/** A body as its schema has it. Throws 422 `invalid_body`, which tells what is wrong with each member. */
export function bodyAs<S extends v.GenericSchema>(schema: S, value: unknown): v.InferOutput<S> {
  const judged = judgeBody(schema, value);
  if (judged.issues === undefined) return judged.body;
  throw problem('invalid_body', { members: { issues: judged.issues } });
}

type Judged<Body> =
  | { readonly body: Body; readonly issues?: undefined }
  | { readonly issues: readonly { readonly path: string; readonly message: string }[] };

function judgeBody<S extends v.GenericSchema>(schema: S, value: unknown): Judged<v.InferOutput<S>> {
  // To valibot an array is an object, and one without members satisfies a schema without required ones.
  if (Array.isArray(value)) return { issues: [issue('', 'must be an object')] };
  const parsed = v.safeParse(schema, value);
  return parsed.success ? { body: parsed.output } : { issues: issuesOf(parsed.issues) };
}

function issuesOf(issues: readonly v.BaseIssue<unknown>[]) {
  return issues.slice(0, maxIssues).map((entry) => issue(pointer(entry), entry.message));
}

function issue(path: string, message: string) {
  return { path: clip(path), message: clip(message) };
}

function clip(text: string): string {
  return (text.length > maxIssueText ? `${text.slice(0, maxIssueText)}…` : text).toWellFormed();
}

/** RFC 6901: `/items/0/cents`; the whole body is the empty string. */
function pointer(entry: v.BaseIssue<unknown>): string {
  return (entry.path ?? []).map((item) => `/${String(item.key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}
