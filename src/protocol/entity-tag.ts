import { isBlank, skipBlanks } from './field-value.ts';

/** An entity tag (RFC 9110 §8.8.3): what stands between the quotes, and whether `W/` stood before them. */
export type EntityTag = { readonly opaque: string; readonly weak: boolean };

/** What the lines of an `If-Match` or `If-None-Match` header say; `any` is `*`. */
export type TagList =
  | { readonly kind: 'absent' }
  | { readonly kind: 'any' }
  | { readonly kind: 'tags'; readonly tags: readonly EntityTag[] }
  | { readonly kind: 'invalid' };

const quote = 0x22;
const comma = 0x2c;

/** The header's lines as one list. `*` stands alone; empty members are skipped, but a list without a tag is invalid. Linear time. */
export function parseTagList(lines: readonly string[]): TagList {
  if (lines.length === 0) return { kind: 'absent' };
  // With the space a tag that is left open at the end of a line cannot be closed by the next one.
  const value = lines.join(', ');
  const tags: EntityTag[] = [];
  let i = skipSeparators(value, 0);
  if (value.charCodeAt(i) === 0x2a) return isAny(lines) ? { kind: 'any' } : { kind: 'invalid' };
  while (i < value.length) {
    const weak = value.startsWith('W/', i);
    const start = weak ? i + 3 : i + 1;
    if (value.charCodeAt(start - 1) !== quote) return { kind: 'invalid' };
    const end = skipTagCharacters(value, start);
    if (value.charCodeAt(end) !== quote) return { kind: 'invalid' };
    tags.push({ opaque: value.slice(start, end), weak });
    i = skipBlanks(value, end + 1);
    if (i < value.length && value.charCodeAt(i) !== comma) return { kind: 'invalid' };
    i = skipSeparators(value, i);
  }
  return tags.length === 0 ? { kind: 'invalid' } : { kind: 'tags', tags };
}

function isAny(lines: readonly string[]): boolean {
  const line = lines[0] as string;
  const star = skipBlanks(line, 0);
  return lines.length === 1 && line.charCodeAt(star) === 0x2a && skipBlanks(line, star + 1) === line.length;
}

function skipSeparators(value: string, index: number): number {
  let i = index;
  while (i < value.length && (value.charCodeAt(i) === comma || isBlank(value.charCodeAt(i)))) i++;
  return i;
}

/** Past the etagc of RFC 9110 §8.8.3: visible ASCII but the quote, and obs-text. */
function skipTagCharacters(value: string, index: number): number {
  let i = index;
  while (i < value.length && isTagCharacter(value.charCodeAt(i))) i++;
  return i;
}

function isTagCharacter(unit: number): boolean {
  return unit >= 0x21 && unit <= 0xff && unit !== quote && unit !== 0x7f;
}

/** The tag as it stands in a header. */
export function formatTag(tag: EntityTag): string {
  return `${tag.weak ? 'W/' : ''}"${tag.opaque}"`;
}

/** The weak comparison of RFC 9110 §8.8.3.2: `W/` does not count. */
export function weakEquals(a: EntityTag, b: EntityTag): boolean {
  return a.opaque === b.opaque;
}

/** True when the list names the current tag; `*` names any. Weak comparison for `If-Match` too: these tags name versions, not bytes. */
export function matchesTag(list: TagList, current: EntityTag | undefined): boolean {
  if (current === undefined) return false;
  if (list.kind === 'any') return true;
  return list.kind === 'tags' && list.tags.some((tag) => weakEquals(tag, current));
}
