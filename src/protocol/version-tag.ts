import { type EntityTag, formatTag } from './entity-tag.ts';

/** Versions are int4 in the database: a larger one names nothing. */
const maxVersion = 2_147_483_647;

/** The tag of one version of a thing. `t` is a short digest of the tenant, so that no two tenants share a tag. */
export function versionTag(id: string, version: number, t: string): EntityTag {
  return { opaque: `${id}-v${version}.${t}`, weak: true };
}

/** `versionTag` as it stands in a header: `W/"{id}-v{version}.{t}"`. */
export function formatVersionTag(id: string, version: number, t: string): string {
  return formatTag(versionTag(id, version, t));
}

/** The version that a tag names, or undefined unless it is exactly a tag `versionTag` makes of this id and `t` (`W/` does not count). */
export function versionOfTag(tag: EntityTag, id: string, t: string): number | undefined {
  const head = `${id}-v`;
  const tail = `.${t}`;
  if (!tag.opaque.startsWith(head) || !tag.opaque.endsWith(tail)) return undefined;
  const digits = tag.opaque.slice(head.length, -tail.length);
  if (!/^[1-9][0-9]{0,9}$/.test(digits)) return undefined;
  const version = Number(digits);
  return version <= maxVersion ? version : undefined;
}
