/** The length of a text in Unicode code points; a lone surrogate counts as one. */
export function codePoints(text: string): number {
  let count = text.length;
  for (let i = 0; i + 1 < text.length; i++) {
    if (isHighSurrogate(text.charCodeAt(i)) && isLowSurrogate(text.charCodeAt(i + 1))) {
      count--;
      i++;
    }
  }
  return count;
}

/** Why a client's text is refused (CONTRACT: U+0000 and lone surrogates are 422), or undefined when nothing is wrong. */
export function hasForbiddenText(text: string): 'nul' | 'lone_surrogate' | undefined {
  if (text.includes('\u0000')) return 'nul';
  return text.isWellFormed() ? undefined : 'lone_surrogate';
}

/** The text with U+0000 and lone surrogates replaced by U+FFFD: what PostgreSQL's `text` can hold. Its length in code points stays. */
export function toStorableText(text: string): string {
  return text.replaceAll('\u0000', '\ufffd').toWellFormed();
}

function isHighSurrogate(unit: number): boolean {
  return (unit & 0xfc00) === 0xd800;
}

function isLowSurrogate(unit: number): boolean {
  return (unit & 0xfc00) === 0xdc00;
}
