/**
 * A text array literal, to be cast in the statement (`${textArray(keys)}::text[]`): one parameter of any length, so the
 * statement stays the same and is prepared once.
 */
export function textArray(values: readonly string[]): string {
  return `{${values.map((value) => `"${value.replace(/["\\]/g, '\\$&')}"`).join(',')}}`;
}
