import { isRecord } from '../protocol/json-object.ts';
import type { Deadline } from './deadline.ts';
import type { WireRequest } from './request.ts';

/** An answer, read whole. `value` is its JSON; undefined for a body that is empty or something else. */
export type Answer = {
  readonly kind: 'answered';
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly value: unknown;
};

/** Why a try has no answer. `cut`: an answer began and was not whole. */
export type Missing = 'connection' | 'timed_out' | 'cut';

/** What became of one try. Without an answer nobody knows whether the request has run. */
export type Outcome =
  | Answer
  /** `headers` are there when the answer began. */
  | { readonly kind: 'no_answer'; readonly reason: Missing; readonly headers?: Headers; readonly cause?: unknown }
  | { readonly kind: 'aborted' };

/**
 * What `fetch` is told in every try. A redirect that is followed can turn a POST into a GET. The browser's cache is left on: without
 * it Chromium asks a preflight before every try, and what it revalidates is safe, as no two tenants share a tag.
 */
const policy = { redirect: 'manual', credentials: 'omit' } as const;

/** Sends the request and resolves with the head of the answer. Rejects as `fetch` does. */
export function send(
  fetch: typeof globalThis.fetch,
  request: WireRequest,
  headers: Headers,
  signal: AbortSignal,
): Promise<Response> {
  const body = request.body === undefined ? {} : { body: request.body };
  return fetch(request.url, { ...policy, method: request.method, headers, signal, ...body });
}

/** One try from end to end. `needsBody` says for which statuses an answer without JSON can't be whole. */
export async function attempt(
  fetch: typeof globalThis.fetch,
  request: WireRequest,
  headers: Headers,
  deadline: Deadline,
  needsBody: (status: number) => boolean,
): Promise<Outcome> {
  let response: Response | undefined;
  try {
    response = await send(fetch, request, headers, deadline.signal);
    return await readAnswer(response, needsBody);
  } catch (cause) {
    if (deadline.isTimedOut()) return { kind: 'no_answer', reason: 'timed_out', cause, ...headOf(response) };
    if (deadline.signal.aborted) return { kind: 'aborted' };
    const reason = response === undefined ? 'connection' : 'cut';
    return { kind: 'no_answer', reason, cause, ...headOf(response) };
  }
}

function headOf(response: Response | undefined): { headers?: Headers } {
  return response === undefined ? {} : { headers: response.headers };
}

/** The rest of an answer whose head is there. Rejects when the connection breaks. */
export async function readAnswer(response: Response, needsBody: (status: number) => boolean): Promise<Outcome> {
  const { status, headers } = response;
  const bytes = new Uint8Array(await response.arrayBuffer());
  const text = new TextDecoder().decode(bytes);
  const value = parseOrUndefined(text);
  const saysJson = /[/+]json\b/i.test(headers.get('content-type') ?? '');
  const isJsonMissing = value === undefined && !isBodiless(status) && (saysJson || needsBody(status));
  if (isJsonMissing || isShort(bytes.length, headers, value)) return { kind: 'no_answer', reason: 'cut', headers };
  return { kind: 'answered', status, headers, text, value };
}

/** A 304 tells of the Content-Type it does not send, through some proxies. */
function isBodiless(status: number): boolean {
  return status === 204 || status === 205 || status === 304;
}

/**
 * Fewer bytes than announced. An object or array that can be read is whole whatever its header says: a compressed answer has its
 * compressed length there, and a page of another origin does not get to see that it was compressed.
 */
function isShort(received: number, headers: Headers, value: unknown): boolean {
  const announced = headers.get('content-length');
  if (announced === null || headers.has('content-encoding') || isRecord(value) || Array.isArray(value)) return false;
  return received > 0 && received < Number(announced);
}

function parseOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
