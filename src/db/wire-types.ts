import type postgres from 'postgres';

/*
 * How values cross between JavaScript and Postgres, the same for raw statements and for drizzle. Not listed: the driver's
 * own (bytea is a Buffer, boolean a boolean, int2, int4, float4 and float8 numbers, numeric and uuid strings).
 */

const oid = { int8: 20, json: 114, jsonb: 3802, date: 1082, timestamp: 1114, timestamptz: 1184 };

/** An int8: a number while that is exact, else a bigint; never a rounded number. */
function parseInt8(text: string): number | bigint {
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : BigInt(text);
}

/** Dates become RFC 3339; text passes as it is, with all its microseconds. */
const formatTime = (value: unknown): string => (value instanceof Date ? value.toISOString() : String(value));

/** Text passes as it is: drizzle hands JSON over already formatted. A raw statement that stores a JSON *string* formats it itself. */
const formatJson = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** The driver's `types` option. timestamptz is a Date (milliseconds); date and timestamp, which name no instant, stay text. */
export const wireTypes: Record<string, postgres.PostgresType> = {
  int8: { to: oid.int8, from: [oid.int8], serialize: (value: unknown) => String(value), parse: parseInt8 },
  json: { to: oid.json, from: [oid.json, oid.jsonb], serialize: formatJson, parse: (text: string) => JSON.parse(text) },
  instant: {
    to: oid.timestamptz,
    from: [oid.timestamptz],
    serialize: formatTime,
    parse: (text: string) => new Date(text),
  },
  local: { to: oid.timestamp, from: [oid.timestamp, oid.date], serialize: formatTime, parse: (text: string) => text },
};
