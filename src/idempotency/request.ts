import { canonicalize } from '../protocol/canonical-json.ts';
import { formatTag, type TagList } from '../protocol/entity-tag.ts';
import { fingerprint } from './fingerprint.ts';

/** A request as a key is bound to it, parsed but as it was sent. */
export type BoundRequest = {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  /** The essence of the Content-Type; undefined without a body. */
  readonly mediaType: string | undefined;
  readonly ifMatch: TagList;
  readonly ifNoneMatch: TagList;
  /** The JSON value, before defaults are filled in; undefined: no body. */
  readonly body: unknown;
};

/** The fingerprint of a request: equal for two that mean the same. */
export function requestFingerprint(request: BoundRequest): Buffer {
  const { method, path, query, mediaType, ifMatch, ifNoneMatch, body } = request;
  return fingerprint({
    method,
    path,
    query: canonicalQuery(query),
    media_type: mediaType,
    if_match: canonicalTags(ifMatch),
    if_none_match: canonicalTags(ifNoneMatch),
    body: body === undefined ? undefined : canonicalize(body),
  });
}

/** The order of names does not matter, the order of one name's values does. */
function canonicalQuery(query: string): string {
  if (query === '') return '';
  const search = new URLSearchParams(query);
  search.sort();
  return search.toString();
}

/** Without `W/`: gateways rewrite it between tries. */
function canonicalTags(list: TagList): string | undefined {
  if (list.kind === 'any') return '*';
  if (list.kind === 'tags') return list.tags.map((tag) => formatTag({ opaque: tag.opaque, weak: false })).join(',');
  return undefined;
}
