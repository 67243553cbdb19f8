import type postgres from 'postgres';

/** A statement or a piece of one as postgres.js builds it: the texts between the parameters, and the parameters. */
type Built = { strings: readonly string[]; readonly args: readonly unknown[] };

/** The text of a statement, its pieces included and each parameter as `?`. */
export function textOf(statement: unknown): string {
  const { strings, args } = statement as Built;
  return strings.reduce((text, string, i) => {
    const arg = args[i - 1];
    return `${text}${isBuilt(arg) ? textOf(arg) : '?'}${string}`;
  });
}

/** Other texts between the parameters of a piece of SQL, as many as there were; the same ones for a piece that stays. */
export type Reword = (texts: readonly string[]) => readonly string[];

/** Changes the texts of a statement and its pieces in place, before it is sent. */
export function rewordStatement(statement: unknown, reword: Reword): void {
  const built = statement as Built;
  const texts = reword(built.strings);
  if (texts !== built.strings) built.strings = Object.assign([...texts], { raw: texts });
  for (const arg of built.args) if (isBuilt(arg)) rewordStatement(arg, reword);
}

/** The same maker of statements, each shown to `see` before anybody can send it. */
export function watchSql(sql: postgres.Sql, see: (statement: unknown) => void): postgres.Sql {
  const template = (first: never, ...rest: never[]) => {
    const made = sql(first, ...rest);
    if (isBuilt(made)) see(made);
    return made;
  };
  return Object.assign(template, sql) as unknown as postgres.Sql;
}

function isBuilt(value: unknown): value is Built {
  return typeof value === 'object' && value !== null && 'strings' in value && 'args' in value;
}
