import { canonicalize } from '../protocol/canonical-json.ts';
import type { Procedure } from '../protocol/procedure.ts';

/** The input of any procedure, as the encoder reads it; `CallInput` is its typed form. */
export type LooseInput = {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  readonly ifMatch?: string;
  readonly create?: true;
};

/** A request, ready to be sent any number of times: every try sends these bytes. */
export type WireRequest = {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array<ArrayBuffer> | undefined;
};

/**
 * The request a procedure makes of an input. The body is canonical JSON (RFC 8785), so an input that went through a store which
 * reorders members still gives the same bytes. Throws a TypeError for an input that cannot be sent.
 */
export function encodeRequest(baseUrl: string, procedure: Procedure, input: LooseInput): WireRequest {
  const headers: Record<string, string> = {};
  let body: Uint8Array<ArrayBuffer> | undefined;
  if (procedure.method !== 'GET' && procedure.body !== undefined) {
    headers['content-type'] = procedure.mediaType ?? 'application/json';
    body = new TextEncoder().encode(canonicalize(plainJson(input.body)));
  }
  if (input.create) headers['if-none-match'] = '*';
  else if (input.ifMatch !== undefined) headers['if-match'] = input.ifMatch;
  return {
    method: procedure.method,
    url: baseUrl.replace(/\/+$/, '') + fillPath(procedure.path, input.params ?? {}) + queryText(input.query ?? {}),
    headers,
    body,
  };
}

/** A copy that JSON can carry: dates as text, undefined members left out. Undefined itself stays undefined. */
export function plainJson<T>(value: T): T {
  const text = JSON.stringify(value);
  return text === undefined ? (undefined as T) : (JSON.parse(text) as T);
}

function fillPath(path: string, params: Readonly<Record<string, string>>): string {
  return path.replace(/\{([^}]+)\}/g, (_braces, name: string) => {
    const value = Object.hasOwn(params, name) ? params[name] : undefined;
    // A URL drops dot segments, and an empty one is another route.
    if (typeof value !== 'string' || value === '' || value === '.' || value === '..') {
      throw new TypeError(`The path parameter ${name} must be a name, not ${JSON.stringify(value)}.`);
    }
    return encodeURIComponent(value);
  });
}

/** Names in order, so that one query is one URL. */
function queryText(query: Readonly<Record<string, unknown>>): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  const search = new URLSearchParams(pairs.map(([name, value]): [string, string] => [name, String(value)]));
  search.sort();
  const text = search.toString();
  return text === '' ? '' : `?${text}`;
}
