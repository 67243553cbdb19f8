import { type EntityTag, matchesTag, type TagList } from './entity-tag.ts';

/** What a conditional request asks, and what it meets. */
export type Conditions = {
  readonly ifMatch: TagList;
  readonly ifNoneMatch: TagList;
  /** The tag of the current representation; undefined when there is none. */
  readonly current: EntityTag | undefined;
  /** True for GET and HEAD. */
  readonly safe: boolean;
};

/** `not_modified` is the 304 of a read, `failed` a 412. */
export type Verdict = 'proceed' | 'not_modified' | 'failed';

/**
 * Judges `If-Match`, then `If-None-Match` (RFC 9110 §13.2.2). Both compare weakly: our tags name versions, not bytes.
 * A malformed header never skips a body on a read, and never lets a write through (whose caller answers 400 before asking).
 */
export function judgeConditions({ ifMatch, ifNoneMatch, current, safe }: Conditions): Verdict {
  if (!safe && (ifMatch.kind === 'invalid' || ifNoneMatch.kind === 'invalid')) return 'failed';
  if (isAsked(ifMatch) && !matchesTag(ifMatch, current)) return 'failed';
  if (isAsked(ifNoneMatch) && matchesTag(ifNoneMatch, current)) return safe ? 'not_modified' : 'failed';
  return 'proceed';
}

function isAsked(list: TagList): boolean {
  return list.kind === 'any' || list.kind === 'tags';
}
