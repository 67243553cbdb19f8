/** A line of a comparison: in both texts, only in the old one, or only in the new one. */
export type DiffLine = { readonly kind: 'same' | 'removed' | 'added'; readonly text: string };

/** A change laid over a newer text. `contested`: both had changed the same lines, and the change was taken. */
export type OnTop = { readonly text: string; readonly contested: boolean };

/** Above so many line pairs texts are compared as a whole: the table would not fit a page's patience. */
const mostPairs = 1_000_000;

/** What turns one text into the other, by lines. */
export function diffLines(before: string, after: string): readonly DiffLine[] {
  const [a, b] = [before.split('\n'), after.split('\n')];
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  const upTo = (endA: number, endB: number) => {
    for (; i < endA; i += 1) lines.push({ kind: 'removed', text: a[i] as string });
    for (; j < endB; j += 1) lines.push({ kind: 'added', text: b[j] as string });
  };
  for (const [inA, inB] of commonLines(a, b)) {
    upTo(inA, inB);
    lines.push({ kind: 'same', text: a[inA] as string });
    [i, j] = [inA + 1, inB + 1];
  }
  upTo(a.length, b.length);
  return lines;
}

/** What was changed from `base` to `mine`, laid over `theirs`, which came from `base` as well. */
export function applyOnTop(base: string, mine: string, theirs: string): OnTop {
  const [o, a, b] = [base.split('\n'), mine.split('\n'), theirs.split('\n')];
  const inMine = new Map(commonLines(o, a));
  const inTheirs = new Map(commonLines(o, b));
  const merged: string[] = [];
  let contested = false;
  let at = { o: 0, a: 0, b: 0 };
  const upTo = (end: typeof at) => {
    const [was, my, their] = [o.slice(at.o, end.o), a.slice(at.a, end.a), b.slice(at.b, end.b)];
    const isMineNew = !isSame(was, my);
    merged.push(...(isMineNew ? my : their));
    if (isMineNew && !isSame(was, their) && !isSame(my, their)) contested = true;
  };
  for (const [line, text] of o.entries()) {
    const [a, b] = [inMine.get(line), inTheirs.get(line)];
    if (a === undefined || b === undefined) continue;
    upTo({ o: line, a, b });
    merged.push(text);
    at = { o: line + 1, a: a + 1, b: b + 1 };
  }
  upTo({ o: o.length, a: a.length, b: b.length });
  return { text: merged.join('\n'), contested };
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((line, index) => line === b[index]);
}

/** Pairs of positions of a longest common subsequence, in order. */
function commonLines(a: readonly string[], b: readonly string[]): [number, number][] {
  if (a.length * b.length > mostPairs) return isSame(a, b) ? a.map((_, index) => [index, index]) : [];
  const width = b.length + 1;
  // The length of the longest one from each pair of positions on.
  const longest = new Uint32Array((a.length + 1) * width);
  const from = (i: number, j: number) => longest[i * width + j] as number;
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      longest[i * width + j] = a[i] === b[j] ? from(i + 1, j + 1) + 1 : Math.max(from(i + 1, j), from(i, j + 1));
    }
  }
  const pairs: [number, number][] = [];
  for (let [i, j] = [0, 0]; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) {
      pairs.push([i, j]);
      [i, j] = [i + 1, j + 1];
    } else if (from(i + 1, j) >= from(i, j + 1)) i += 1;
    else j += 1;
  }
  return pairs;
}
