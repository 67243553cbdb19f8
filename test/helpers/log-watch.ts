import assert from 'node:assert/strict';

/** Keys that this process has sent. */
const sentKeys = new Set<string>();
/** What a log may say for another reason: something short, or a word such as the code of an error. */
const ambiguous = /^(?:.{0,7}|[a-z_]+)$/;
/** A signed token, whoever made it. */
const tokens = /\beyJ[\w-]{10,}\.[\w-]+\.[\w-]*/;

/** Remembers a key that was sent: no log of this process's servers may hold it. */
export function noteKey(key: string): void {
  if (!ambiguous.test(key)) sentKeys.add(key);
}

/** Fails when a log holds a token, or a key that was sent. Lines that are no JSON are the program's words to its user: passed over. */
export function assertNoSecretIn(lines: Iterable<string>): void {
  for (const line of lines) {
    if (!line.startsWith('{')) continue;
    assert.doesNotMatch(line, tokens, 'a token is in the log');
    const words = line.split(/[\s"'`/?&=,;:()[\]{}\\]+/);
    for (const word of words) assert.ok(!sentKeys.has(word), `the key ${word} is in the log: ${line}`);
  }
}
