import { tenantDigest } from './auth/tenant-digest.ts';
import type { Context } from './handler.ts';
import { type Problem, problem } from './protocol/errors.ts';
import { type VersionCondition, versionCondition } from './protocol/version-condition.ts';
import { formatVersionTag } from './protocol/version-tag.ts';

/** The entity tag of a version of a tenant's thing. Ids are visible ASCII without quotes; no two kinds of things may share one. */
export function tagOf(tenant: string, id: string, version: number): string {
  return formatVersionTag(id, version, tenantDigest(tenant));
}

/** What the request's If-Match and If-None-Match ask of the version of a thing, for a statement's WHERE. */
export function conditionOf(
  { tenant, ifMatch, ifNoneMatch }: Pick<Context, 'tenant' | 'ifMatch' | 'ifNoneMatch'>,
  id: string,
): VersionCondition {
  return versionCondition({ ifMatch, ifNoneMatch }, id, tenantDigest(tenant));
}

/** The 412 of a thing that is at another version, with the tag that works on the next try. `members` go into its body. */
export function staleVersion(
  tenant: string,
  id: string,
  version: number,
  members: Readonly<Record<string, unknown>> = {},
): Problem {
  const tag = tagOf(tenant, id, version);
  return problem('precondition_failed', {
    headers: { ETag: tag },
    members: { current_etag: tag, current_version: version, ...members },
  });
}
