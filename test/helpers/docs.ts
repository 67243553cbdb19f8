import assert from 'node:assert/strict';
import type { Called, CallOptions } from './server.ts';

/** What the helpers need of a server. */
type Caller = { call(line: string, options?: CallOptions): Promise<Called> };

/** Creates a document with `If-None-Match: *` and answers its tag. */
export async function createDoc(server: Caller, id: string, options: CallOptions = {}): Promise<string> {
  const created = await server.call(`PUT /v1/docs/${id}`, {
    body: { title: 'first', body: 'one' },
    ...options,
    headers: { 'if-none-match': '*', ...options.headers },
  });
  assert.equal(created.status, 201, created.text);
  return tagOf(created);
}

/** Sends a PUT with `If-Match`. */
export function putDoc(server: Caller, id: string, tag: string, options: CallOptions = {}): Promise<Called> {
  return server.call(`PUT /v1/docs/${id}`, {
    body: { title: 'next', body: 'two' },
    ...options,
    headers: { 'if-match': tag, ...options.headers },
  });
}

/** Sends a merge patch with `If-Match`. */
export function patchDoc(
  server: Caller,
  id: string,
  tag: string,
  patch: unknown,
  options: CallOptions = {},
): Promise<Called> {
  return server.call(`PATCH /v1/docs/${id}`, {
    body: patch,
    ...options,
    headers: { 'if-match': tag, 'content-type': 'application/merge-patch+json', ...options.headers },
  });
}

/** The tag of an answer. */
export function tagOf(called: Called): string {
  const tag = called.headers.get('etag');
  assert.ok(tag, `no ETag on ${called.status} ${called.text}`);
  return tag;
}

/** That the answer is an error with this code. */
export function assertProblem(called: Called, status: number, code: string): void {
  assert.deepEqual([called.status, called.json?.code], [status, code], called.text);
}
