import type { TagList } from './entity-tag.ts';
import { versionOfTag } from './version-tag.ts';

/** Some versions of one thing, or all that it ever has. */
export type Versions = 'any' | readonly number[];

/** The preconditions of a request about one thing: its version must be one of `wanted` and none of `unwanted`. */
export type VersionCondition = { readonly wanted: Versions; readonly unwanted: Versions };

/** Holds whatever the version is. */
export const anyVersion: VersionCondition = { wanted: 'any', unwanted: [] };
/** Never holds. */
export const noVersion: VersionCondition = { wanted: [], unwanted: [] };

/**
 * `If-Match` and `If-None-Match` as versions, so that a statement can judge them. It holds exactly where `judgeConditions`
 * says `proceed` of something that is there: a tag that is not letter for letter one of this id and `t` names no version.
 */
export function versionCondition(
  headers: { readonly ifMatch: TagList; readonly ifNoneMatch: TagList },
  id: string,
  t: string,
): VersionCondition {
  const isAsked = headers.ifMatch.kind === 'any' || headers.ifMatch.kind === 'tags';
  return {
    wanted: isAsked ? versionsOf(headers.ifMatch, id, t) : 'any',
    unwanted: versionsOf(headers.ifNoneMatch, id, t),
  };
}

function versionsOf(list: TagList, id: string, t: string): Versions {
  if (list.kind === 'any') return 'any';
  if (list.kind !== 'tags') return [];
  return list.tags.map((tag) => versionOfTag(tag, id, t)).filter((version) => version !== undefined);
}

/** True when the condition holds of a thing that is there and at this version. */
export function allowsVersion({ wanted, unwanted }: VersionCondition, version: number): boolean {
  return includesVersion(wanted, version) && !includesVersion(unwanted, version);
}

/** True when the version is one of them. */
export function includesVersion(versions: Versions, version: number): boolean {
  return versions === 'any' || versions.includes(version);
}
