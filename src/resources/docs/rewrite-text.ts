import { codePoints, toStorableText } from '../../protocol/text.ts';

/** Code points that a document's body holds. */
const maxBody = 1_000_000;
/** Ends a body that was cut, so that whoever reads it knows. */
const cutNote = '\n\n[cut here: the model wrote more than a document can hold]';

/** What the model is asked. */
export function rewritePrompt(instruction: string, doc: { readonly title: string; readonly body: string }): string {
  return `Rewrite the document below as the instruction says. Answer with the new text and nothing else.

Instruction: ${instruction}

Title: ${doc.title}

${doc.body}`;
}

/** A model's text as a document can hold it: U+0000 and lone surrogates replaced by U+FFFD, and what is too long cut, saying so. */
export function bodyOf(text: string): string {
  const storable = toStorableText(text);
  // A code point has one or two UTF-16 units, so most texts need not be counted.
  if (storable.length <= maxBody || codePoints(storable) <= maxBody) return storable;
  const kept = Array.from(storable.slice(0, 2 * maxBody)).slice(0, maxBody - cutNote.length);
  return kept.join('') + cutNote;
}
