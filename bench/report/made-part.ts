const begin = '<!-- made by npm run bench -->';
const end = '<!-- end -->';

/** A document with the part between its two marks made anew; unchanged where it has none, or nothing was measured for it. */
export function withMadePart(document: string, part: string | undefined): string {
  const from = document.indexOf(begin);
  const to = document.indexOf(end, from);
  if (part === undefined || from === -1 || to === -1) return document;
  return `${document.slice(0, from + begin.length)}\n\n${part.trimEnd()}\n\n${document.slice(to)}`;
}
