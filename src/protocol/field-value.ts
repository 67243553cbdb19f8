/** The value without the spaces and tabs around it (OWS, RFC 9110 §5.6.3). `String.trim` would also take U+00A0, which is content here. */
export function trimBlanks(value: string): string {
  let start = 0;
  let end = value.length;
  while (start < end && isBlank(value.charCodeAt(start))) start++;
  while (end > start && isBlank(value.charCodeAt(end - 1))) end--;
  return value.slice(start, end);
}

/** The index of the first character at or after `index` that is neither space nor tab. */
export function skipBlanks(value: string, index: number): number {
  let i = index;
  while (i < value.length && isBlank(value.charCodeAt(i))) i++;
  return i;
}

/** True for space and tab. */
export function isBlank(unit: number): boolean {
  return unit === 0x20 || unit === 0x09;
}
