import type postgres from 'postgres';
import type { Queries } from '../db/pool.ts';
import { isRefused, isSessionLost, sqlstateOf } from '../db/sqlstate.ts';
import { DatabaseUnavailable } from '../db/unavailable.ts';
import type { Run } from './drivers.ts';

/** A statement or a piece of one: the texts between the values, which may be pieces themselves. */
class Piece {
  readonly texts: readonly string[];
  readonly values: readonly unknown[];
  constructor(texts: readonly string[], values: readonly unknown[]) {
    this.texts = texts;
    this.values = values;
  }
}

// Makes pieces where postgres.js would make queries. The statements of the key use no more of it than this.
const tag = Object.assign((texts: TemplateStringsArray, ...values: unknown[]) => new Piece(texts, values), {
  unsafe: (text: string) => new Piece([text], []),
}) as unknown as postgres.Sql;

/** The statements of the key through somebody else's driver. What did not reach Postgres rejects with `DatabaseUnavailable`. */
export function queriesThrough(run: Run, keySchema: string): Queries {
  return {
    keySchema,
    async query(build) {
      const values: unknown[] = [];
      const text = flatten(build(tag) as unknown as Piece, values);
      const rows = await run(text, values).catch((error: unknown) => {
        throw faultOf(error);
      });
      return rows.map(withDates) as never;
    },
  };
}

function flatten({ texts, values }: Piece, into: unknown[]): string {
  return texts.reduce((text, next, i) => {
    const value = values[i - 1];
    return `${text}${value instanceof Piece ? flatten(value, into) : `$${into.push(value)}`}${next}`;
  });
}

const answered = { sent: true, commitUnknown: false };
const unanswered = { sent: true, commitUnknown: true };

/** These statements are sound: an error without an SQLSTATE comes from the driver or the network, whatever its name is there. */
function faultOf(error: unknown): unknown {
  if (sqlstateOf(error) === undefined || isSessionLost(error))
    return new DatabaseUnavailable('lost', unanswered, error);
  return isRefused(error) ? new DatabaseUnavailable('refused', answered, error) : error;
}

/** The columns of `idem` and of its statements that are times. drizzle tells postgres.js to leave those as text. */
const times = ['now', 'created_at', 'expires_at', 'claimed_at', 'claimed_until'];

function withDates(row: object): object {
  const dated: Record<string, unknown> = { ...row };
  for (const name of times) {
    const value = dated[name];
    if (typeof value === 'string') dated[name] = new Date(value);
  }
  return dated;
}
