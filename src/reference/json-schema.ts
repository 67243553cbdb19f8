import { type ConversionConfig, toJsonSchema } from '@valibot/to-json-schema';
import type * as v from 'valibot';

type Json = Record<string, unknown>;

/** What a schema of ours tells of itself with `v.metadata`. */
type SchemaNote = {
  readonly minLength?: number;
  readonly maxLength?: number;
  /** What the text of a header or query stands for, such as a number. */
  readonly onTheWire?: Json;
};

const config: ConversionConfig = {
  target: 'openapi-3.0',
  // Checks in code (well-formed text) have no counterpart in JSON Schema; lengths are told as metadata.
  errorMode: 'ignore',
  overrideAction({ valibotAction, jsonSchema }) {
    if (valibotAction.type !== 'metadata') return undefined;
    const { minLength, maxLength, onTheWire } = (valibotAction as unknown as { metadata: SchemaNote }).metadata;
    return {
      ...(onTheWire ?? jsonSchema),
      ...(minLength === undefined ? {} : { minLength }),
      ...(maxLength === undefined ? {} : { maxLength }),
    };
  },
};

/** A schema as JSON Schema 2020-12, as OpenAPI 3.1 embeds it; `input`: what a client may send, `output`: what it gets. */
export function jsonSchema(schema: v.GenericSchema, mode: 'input' | 'output'): Json {
  const { $schema: _, ...converted } = toJsonSchema(schema, {
    ...config,
    target: 'draft-2020-12',
    typeMode: mode,
  }) as Json;
  return converted;
}

/** A query's schema; the default of what is a number on the wire is one, too. */
export function querySchema(schema: v.GenericSchema): Json {
  const json = jsonSchema(schema, 'input');
  return json.type === 'integer' && 'default' in json ? { ...json, default: Number(json.default) } : json;
}
