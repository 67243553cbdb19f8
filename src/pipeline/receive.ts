import type { IncomingMessage, ServerResponse } from 'node:http';
import { announcedLength, announcesBody, readBody } from '../http/body.ts';
import { parseMediaType } from '../http/media-type.ts';
import { parseTagList, type TagList } from '../protocol/entity-tag.ts';
import { problem } from '../protocol/errors.ts';
import { parseIdempotencyKey } from '../protocol/idempotency-key.ts';
import { parseJson } from '../protocol/json.ts';
import { type Prefer, parsePrefer } from '../protocol/prefer.ts';
import type { ApiRoute } from './route.ts';

/** Bounds of what is received. */
export type ReceiveLimits = { readonly maxBodyBytes: number; readonly requestTimeoutMs: number };

/** What the head of a request says, beyond method and path. */
export type Head = {
  readonly key: string | undefined;
  readonly ifMatch: TagList;
  readonly ifNoneMatch: TagList;
  readonly prefer: Prefer;
  /** The essence of the Content-Type, where a body is taken. */
  readonly mediaType: string | undefined;
};

/** A body as JSON; `value` is undefined only when the route takes none. */
export type ReceivedBody = { readonly value: unknown };

/** Step 4, the part the head decides: 415, 400 `unexpected_body`, 413. */
export function checkBodyHeaders(route: ApiRoute, req: IncomingMessage, maxBodyBytes: number): string | undefined {
  if (route.mediaType === undefined) {
    if (announcesBody(req)) throw problem('unexpected_body');
    return undefined;
  }
  const media = parseMediaType(req.headersDistinct['content-type']?.[0]);
  const encoding = req.headersDistinct['content-encoding']?.join(', ');
  const isPlain = encoding === undefined || encoding.trim().toLowerCase() === 'identity';
  if (media?.essence !== route.mediaType || !media.isUtf8 || !isPlain) {
    const accepts = route.mounted.procedure.method === 'PATCH' ? 'Accept-Patch' : 'Accept';
    const isJsonPatch = media?.essence === 'application/json-patch+json';
    const hint = isJsonPatch ? ' It holds the new values themselves (RFC 7396), not operations.' : '';
    throw problem('unsupported_media_type', {
      message: `Send the body as ${route.mediaType} in UTF-8, without Content-Encoding.${hint}`,
      headers: { [accepts]: route.mediaType },
    });
  }
  if ((announcedLength(req) ?? 0) > maxBodyBytes) throw problem('body_too_large');
  return media.essence;
}

/** Step 5, the part the head decides: the key's and the preconditions' syntax. */
export function parseHead(route: ApiRoute, req: IncomingMessage, mediaType: string | undefined): Head {
  const { procedure } = route.mounted;
  const lines = req.headersDistinct;
  const ifMatch = parseTagList(lines['if-match'] ?? []);
  const ifNoneMatch = parseTagList(lines['if-none-match'] ?? []);
  const prefer = parsePrefer(lines.prefer ?? []);
  // On a GET the key means nothing, and a malformed tag is no condition: the body is sent.
  if (procedure.method === 'GET') {
    return { key: undefined, ifMatch, ifNoneMatch, prefer, mediaType };
  }
  const header = parseIdempotencyKey(lines['idempotency-key'] ?? []);
  if (header.kind === 'invalid') throw problem('idempotency_key_invalid', { message: header.reason });
  if (header.kind === 'absent' && procedure.key === 'required') throw problem('idempotency_key_required');
  if (ifMatch.kind === 'invalid' || ifNoneMatch.kind === 'invalid') throw problem('precondition_invalid');
  const key = header.kind === 'key' ? header.key : undefined;
  return { key, ifMatch, ifNoneMatch, prefer, mediaType };
}

/** Receives the body whole (413, 408) and reads it as JSON (400 `invalid_json`). */
export async function receiveBytes(
  route: ApiRoute,
  req: IncomingMessage,
  res: ServerResponse,
  limits: ReceiveLimits,
  expectsContinue: boolean,
): Promise<Uint8Array | undefined> {
  if (route.mediaType === undefined) return undefined;
  if (expectsContinue) res.writeContinue();
  return await readBody(req, limits.maxBodyBytes, limits.requestTimeoutMs);
}

/** The JSON value of a received body; throws 400 `invalid_json`. */
export function readJson(bytes: Uint8Array | undefined): unknown {
  if (bytes === undefined) return undefined;
  const parsed = parseJson(bytes);
  if (parsed.kind === 'invalid') throw problem('invalid_json', { message: parsed.reason });
  return parsed.value;
}
