/** A command of the tour with the answer that stands below it. */
export type Step = {
  /** The heading it stands under. */
  readonly section: string;
  /** The lines of prose between the last step and this one. */
  readonly prose: string;
  /** What is pasted into a shell. */
  readonly command: string;
  /** The answer as the document shows it. */
  readonly answer: string;
};

/** A piece of the document: prose, or a step. */
type Piece = { readonly kind: 'prose'; readonly text: string } | { readonly kind: 'step'; readonly step: Step };

const stepPattern = /```sh\n([\s\S]*?)```\n(?:\n```text\n([\s\S]*?)```\n)?/g;

/** Takes a tour apart: every `sh` block is a step, the `text` block right below it its answer. */
export function parseTour(markdown: string): readonly Piece[] {
  const pieces: Piece[] = [];
  let section = '';
  let end = 0;
  for (const match of markdown.matchAll(stepPattern)) {
    const prose = markdown.slice(end, match.index);
    section = [...prose.matchAll(/^## (.+)$/gm)].at(-1)?.[1] ?? section;
    pieces.push({ kind: 'prose', text: prose });
    const [whole, command = '', answer = ''] = match;
    pieces.push({ kind: 'step', step: { section, prose, command, answer } });
    end = match.index + whole.length;
  }
  pieces.push({ kind: 'prose', text: markdown.slice(end) });
  return pieces;
}

/** The steps of a tour, in order. */
export function stepsOf(markdown: string): readonly Step[] {
  return parseTour(markdown).flatMap((piece) => (piece.kind === 'step' ? [piece.step] : []));
}

/** The same document with other answers, one a step. */
export function withAnswers(markdown: string, answers: readonly string[]): string {
  let index = 0;
  return parseTour(markdown)
    .map((piece) => {
      if (piece.kind === 'prose') return piece.text;
      const answer = answers[index] ?? '';
      index += 1;
      return `\`\`\`sh\n${piece.step.command}\`\`\`\n${answer === '' ? '' : `\n\`\`\`text\n${answer}\`\`\`\n`}`;
    })
    .join('');
}

/** Headers the tour shows; every other line of a head is left out. */
const shownHeaders = new Set([
  'accept-patch',
  'allow',
  'content-type',
  'etag',
  'idempotency-expires',
  'idempotent-replayed',
  'link',
  'location',
  'preference-applied',
  'retry-after',
  'x-should-retry',
]);

/** Shows what a shell printed as the tour does; one for a walk, so that an id has the same name wherever it appears. */
export function createMask(): (output: string) => string {
  const names = new Map<string, string>();
  const counts = new Map<string, number>();
  const nameOf = (id: string, prefix: string): string => {
    const known = names.get(id);
    if (known !== undefined) return known;
    const count = (counts.get(prefix) ?? 0) + 1;
    counts.set(prefix, count);
    const name = `${prefix}_(${count})`;
    names.set(id, name);
    return name;
  };
  return (output) => shownAnswer(output).replace(/\b([a-z]{3})_[0-9a-f]{32}\b/g, nameOf);
}

/** Heads reduced to the headers that matter; times, traces and digests masked. */
function shownAnswer(output: string): string {
  const lines = output.replaceAll('\r', '').split('\n');
  const shown: string[] = [];
  let inHead = false;
  for (const line of lines) {
    if (/^HTTP\/1\.1 \d{3}/.test(line)) inHead = true;
    else if (inHead && line === '') inHead = false;
    else if (inHead && !shownHeaders.has(line.slice(0, line.indexOf(':')).toLowerCase())) continue;
    shown.push(maskLine(line));
  }
  const text = shown
    .join('\n')
    .replace(/\n{2,}/g, '\n\n')
    .trim();
  return text === '' ? '' : `${text}\n`;
}

/** Replaces what differs from run to run by a name for it. */
function maskLine(line: string): string {
  return line
    .replace(/\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z/g, '(time)')
    .replace(/"trace_id":"[0-9a-f]{32}"/g, '"trace_id":"…"')
    .replace(/(-v\d+\.)[A-Za-z0-9_-]{10}/g, '$1t')
    .replace(/list-[A-Za-z0-9_-]{22}/g, 'list-…')
    .replace(/"next":"[^"]+"/g, '"next":"…"')
    .replace(/"(draft|result)":"(?:[^"\\]|\\.)+"/g, '"$1":"…"');
}
