const words =
  'answer balance claim commit document edit fence hold keep lease model note order page queue read retry row send table tag tenant token version wait write'.split(
    ' ',
  );

/** A text of exactly `length` ASCII characters, the same for the same seed: words, which compress about as text does. */
export function prose(seed: number, length: number): string {
  let state = (seed * 2_654_435_761) >>> 0;
  let text = '';
  while (text.length < length) {
    // Numerical Recipes' linear congruential generator: enough to shuffle words.
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    text += `${words[(state >>> 8) % words.length]}${state % 11 === 0 ? '. ' : ' '}`;
  }
  return text.slice(0, length);
}
