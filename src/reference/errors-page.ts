import { type ErrorCode, errorCodes, errorEntry, keyActionOf } from '../protocol/errors.ts';

const retrySentences = {
  no: 'No: sent again as it is, it gets the same answer.',
  wait: 'Yes, after `Retry-After`, with the same key.',
  maybe: 'It may: with back-off and the same key.',
} as const;

const keySentences = {
  reuse: '`reuse`: send the same key again.',
  rotate: '`rotate`: this key cannot serve; a new intent needs a new key.',
  reconcile: '`reconcile`: look at the resource before anything else.',
} as const;

const freeKeySentence = '`reuse`: it is not used up; send it with the request put right.';

/** The entry of one code, in sentences. */
function entryOf(code: ErrorCode) {
  const entry = errorEntry(code);
  return {
    code,
    status: entry.status,
    when: entry.when,
    what: entry.message,
    retry: retrySentences[entry.retry],
    key: entry.retry === 'no' && keyActionOf(code) === 'reuse' ? freeKeySentence : keySentences[keyActionOf(code)],
  };
}

/** `docs/errors.md`: one heading per code. */
export function errorsMarkdown(): string {
  const sections = (Object.keys(errorCodes) as ErrorCode[]).map(entryOf).map(
    (entry) => `## ${entry.code}

**${entry.status}.** ${entry.when}

- What to do: ${entry.what}
- May a retry help? ${entry.retry}
- The key: ${entry.key}
`,
  );
  return `# Errors

Generated from \`src/protocol/errors.ts\`. Every error is \`application/problem+json\` with \`type\`, \`status\`, \`code\`, \`message\` and \`trace_id\`;
switch on \`code\`. On routes that take a key, \`key_action\` says what to do with it.

${sections.join('\n')}`;
}

/** The same as a page for browsers: what an error's \`type\` leads to. */
export function errorsHtml(): string {
  const sections = (Object.keys(errorCodes) as ErrorCode[]).map(entryOf).map(
    (entry) => `<section id="${entry.code}">
<h2>${entry.status} <code>${entry.code}</code></h2>
<p>${html(entry.when)}</p>
<dl>
<dt>What to do</dt><dd>${html(entry.what)}</dd>
<dt>May a retry help?</dt><dd>${html(entry.retry)}</dd>
<dt>The key</dt><dd>${html(entry.key)}</dd>
</dl>
</section>`,
  );
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>Errors of retry-safe</title>
<h1>Errors</h1>
${sections.join('\n')}
</html>
`;
}

function html(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replace(/`([^`]+)`/g, '<code>$1</code>');
}
