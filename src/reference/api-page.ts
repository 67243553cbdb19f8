import type * as v from 'valibot';
import { type ErrorCode, errorEntry } from '../protocol/errors.ts';
import type { Procedure } from '../protocol/procedure.ts';
import { codesOf, commonCodes, strayCodes } from './codes-of.ts';
import { jsonSchema, querySchema } from './json-schema.ts';

type Json = Record<string, unknown>;

/** `docs/api.md`: the reference of a contract, with a curl line per operation. */
export function apiMarkdown(contract: Readonly<Record<string, Procedure>>): string {
  return `# API reference

Generated from \`src/protocol/contract.ts\`; the same as OpenAPI 3.1 is at \`/openapi.json\` of a running server. \`$URL\` and \`$ACME\` stand for its
address and a token, as \`npm start\` prints them. Other names in capitals stand for what an earlier answer said: \`$DOC_ID\` for the \`id\` of a
document, \`$ORDER_ID\` for an \`order_id\`, \`$KEY\` for an \`Idempotency-Key\` that was sent. A line sent twice is the same intent twice, and its answer
says \`Idempotent-Replayed: true\`; for a new intent change the key.

Every answer has \`X-Trace-Id\`. Any operation can answer ${commonCodes.map(codeLink).join(', ')}; an address that is no operation's answers
${strayCodes.map(codeLink).join(' or ')}. What follows below are an operation's own.

${Object.entries(contract)
  .map(([name, procedure]) => section(name, procedure))
  .join('\n')}`;
}

const isCommon = (code: ErrorCode) => (commonCodes as readonly ErrorCode[]).includes(code);

function section(name: string, procedure: Procedure): string {
  const facts = [
    ...(procedure.scope === undefined ? [] : [`Scope: \`${procedure.scope}\`.`]),
    ...factsOf(procedure),
    `Answers: ${Object.keys(procedure.answers).join(', ')}${procedure.method === 'GET' && procedure.tag ? ', 304' : ''}.`,
    ...(procedure.answerHeaders === undefined
      ? []
      : [`Headers of the answer: ${procedure.answerHeaders.map((header) => `\`${header}\``).join(', ')}.`]),
    `Errors: ${codesOf(procedure)
      .filter((code) => !isCommon(code))
      .map(codeLink)
      .join(', ')}.`,
  ];
  return `## ${name}

\`${procedure.method} ${procedure.path}\`: ${procedure.summary}${procedure.details === undefined ? '' : `\n\n${procedure.details}`}

${facts.map((fact) => `- ${fact}`).join('\n')}

\`\`\`sh
${curl(name, procedure)}
\`\`\`
${querySection(procedure)}${bodySection(procedure)}${answerSections(procedure)}`;
}

const codeLink = (code: ErrorCode) => `[${code}](errors.md#${code}) (${errorEntry(code).status})`;

function factsOf(procedure: Procedure): string[] {
  if (procedure.method === 'GET') {
    if (procedure.stream) return ['A stream of server-sent events; `Last-Event-ID` or `after` resumes it.'];
    return procedure.tag
      ? ['Has an `ETag`; obeys `If-None-Match` and `If-Match`. `HEAD` works too.']
      : ['`HEAD` works too.'];
  }
  const conditions = {
    if_match: '`If-Match` is required; `*` overwrites whatever is there.',
    if_match_or_create: '`If-Match` replaces, `If-None-Match: *` creates; one of them is required.',
  };
  return [
    `\`Idempotency-Key\` is ${procedure.key}.`,
    ...(procedure.condition === undefined ? [] : [conditions[procedure.condition]]),
    ...(procedure.spends ? ['Counts against the rate limit.'] : []),
  ];
}

function curl(name: string, procedure: Procedure): string {
  const path = procedure.path.replace(/\{([a-z_]+)\}/g, (_, param: string) => `$${variableOf(procedure.path, param)}`);
  const isStream = procedure.method === 'GET' && procedure.stream === true;
  const words = [`curl ${isStream ? '-iN' : '-i'} "$URL${path}"`, '-H "Authorization: Bearer $ACME"'];
  if (procedure.method === 'GET') return words.join(' ');
  if (procedure.method !== 'POST') words.splice(1, 0, `-X ${procedure.method}`);
  // A key of each operation's own: under another's it would be refused.
  if (procedure.key === 'required') words.push(`-H 'Idempotency-Key: ${name}-1'`);
  if (procedure.condition !== undefined) words.push("-H 'If-Match: *'");
  if (procedure.body !== undefined) {
    const example = procedure.example ?? exampleOf(jsonSchema(procedure.body, 'input'));
    words.push(`-H 'Content-Type: ${procedure.mediaType ?? 'application/json'}'`);
    words.push(`-d '${JSON.stringify(example).replaceAll("'", "'\\''")}'`);
  }
  return words.join(' ');
}

/** `$DOC_ID` for the `id` below `/v1/docs`; a parameter that names itself is its own variable. */
function variableOf(path: string, param: string): string {
  const noun = path.split('/')[2]?.replace(/s$/, '') ?? '';
  return (param === 'id' ? `${noun}_id` : param).toUpperCase();
}

/** The smallest value that a schema takes, with the members that are required. */
export function exampleOf(schema: Json): unknown {
  if ('const' in schema) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  if (schema.type === 'integer' || schema.type === 'number') return schema.minimum ?? 0;
  if (schema.type === 'string') return 'text';
  if (schema.type === 'object') {
    const required = new Set(schema.required as string[] | undefined);
    const properties = Object.entries((schema.properties ?? {}) as Record<string, Json>);
    const shown = properties.filter(([name]) => required.has(name));
    // A body of which nothing is required still shows what it is for.
    return Object.fromEntries(
      (shown.length > 0 ? shown : properties.slice(0, 1)).map(([name, value]) => [name, exampleOf(value)]),
    );
  }
  return null;
}

function querySection(procedure: Procedure): string {
  if (procedure.query === undefined) return '';
  const properties = Object.fromEntries(
    Object.entries(procedure.query).map(([name, schema]) => [name, querySchema(schema as v.GenericSchema)]),
  );
  return `\nQuery:\n\n${table({ properties }, 'required')}`;
}

function bodySection(procedure: Procedure): string {
  if (procedure.method === 'GET' || procedure.body === undefined) return '';
  return `\nBody:\n\n${table(jsonSchema(procedure.body, 'input'), 'required')}`;
}

function answerSections(procedure: Procedure): string {
  const seen = new Set<unknown>();
  return Object.entries(procedure.answers)
    .filter(([, schema]) => schema !== null && !seen.has(schema) && seen.add(schema))
    .map(([status, schema]) => {
      const json = jsonSchema(schema as never, 'output');
      return json.properties === undefined ? '' : `\nAnswer ${status}:\n\n${table(json, 'always')}`;
    })
    .join('');
}

function table(schema: Json, last: 'required' | 'always'): string {
  return `| member | type | ${last} |\n|---|---|---|\n${rowsOf(schema, '').join('\n')}\n`;
}

/** A row for each member, and below it one for each of what it is made of: `items[].order_id`, `usage.prompt_tokens`. */
function rowsOf(schema: Json, prefix: string): string[] {
  const required = new Set(schema.required as string[] | undefined);
  return Object.entries((schema.properties ?? {}) as Record<string, Json>).flatMap(([name, value]) => [
    `| \`${prefix}${name}\` | ${typeText(value)} | ${required.has(name) ? 'yes' : 'no'} |`,
    ...partsOf(value).flatMap(([suffix, part]) => rowsOf(part, `${prefix}${name}${suffix}`)),
  ]);
}

function partsOf(schema: Json): [suffix: string, part: Json][] {
  const variants = (schema.anyOf ?? schema.oneOf ?? []) as Json[];
  if (schema.type === 'array') return [['[].', (schema.items ?? {}) as Json]];
  return [schema, ...variants].filter((part) => part.properties !== undefined).map((part) => ['.', part]);
}

function typeText(schema: Json): string {
  const variants = (schema.anyOf ?? schema.oneOf) as Json[] | undefined;
  if (variants !== undefined) return variants.map(typeText).join(' or ');
  if ('const' in schema) return `\`${JSON.stringify(schema.const)}\``;
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => `\`${String(value)}\``).join(', ');
  const bounds = [
    ...range(schema.minimum, schema.maximum, ''),
    ...range(schema.minLength, schema.maxLength, ' characters'),
    ...(schema.format === undefined ? [] : [String(schema.format)]),
    ...(schema.default === undefined ? [] : [`default ${JSON.stringify(schema.default)}`]),
  ];
  if (schema.type === 'array') return `array of ${typeText((schema.items ?? {}) as Json)}`;
  return `${String(schema.type ?? 'any')}${bounds.length > 0 ? ` (${bounds.join(', ')})` : ''}`;
}

function range(min: unknown, max: unknown, unit: string): string[] {
  if (min === undefined && max === undefined) return [];
  if (min === undefined) return [`up to ${max}${unit}`];
  if (max === undefined) return [`${min} or more${unit}`];
  return [`${min} to ${max}${unit}`];
}
