import { errorEntry } from '../protocol/errors.ts';
import type { Procedure } from '../protocol/procedure.ts';
import { codesOf } from './codes-of.ts';
import { jsonSchema } from './json-schema.ts';

type Json = Record<string, unknown>;

/** `docs/api.md`: the reference of a contract, with a curl line per operation. */
export function apiMarkdown(contract: Readonly<Record<string, Procedure>>): string {
  return `# API reference

Generated from \`src/protocol/contract.ts\`; the same as OpenAPI 3.1 is at \`/openapi.json\` of a running server. \`$URL\` and \`$ACME\` stand for its
address and a token, as \`npm start\` prints them. Every answer has \`X-Trace-Id\`; every error is described in [errors.md](errors.md).

${Object.entries(contract)
  .map(([name, procedure]) => section(name, procedure))
  .join('\n')}`;
}

function section(name: string, procedure: Procedure): string {
  const facts = [
    ...(procedure.scope === undefined ? [] : [`Scope: \`${procedure.scope}\`.`]),
    ...factsOf(procedure),
    `Answers: ${Object.keys(procedure.answers).join(', ')}${procedure.method === 'GET' && procedure.tag ? ', 304' : ''}.`,
    `Errors: ${codesOf(procedure).map(codeLink).join(', ')}.`,
  ];
  return `## ${name}

\`${procedure.method} ${procedure.path}\`: ${procedure.summary}

${facts.map((fact) => `- ${fact}`).join('\n')}

\`\`\`sh
${curl(procedure)}
\`\`\`
${bodySection(procedure)}${answerSections(procedure)}`;
}

const codeLink = (code: Parameters<typeof errorEntry>[0]) =>
  `[${code}](errors.md#${code}) (${errorEntry(code).status})`;

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

function curl(procedure: Procedure): string {
  const path = procedure.path.replace(/\{([a-z_]+)\}/g, (_, name: string) => `$${name.toUpperCase()}`);
  const words = [`curl -i "$URL${path}"`, '-H "Authorization: Bearer $ACME"'];
  if (procedure.method === 'GET') return words.join(' ');
  if (procedure.method !== 'POST') words.splice(1, 0, `-X ${procedure.method}`);
  if (procedure.key === 'required') words.push("-H 'Idempotency-Key: k-1'");
  if (procedure.condition !== undefined) words.push("-H 'If-Match: *'");
  if (procedure.body !== undefined) {
    words.push(`-H 'Content-Type: ${procedure.mediaType ?? 'application/json'}'`);
    words.push(`-d '${JSON.stringify(exampleOf(jsonSchema(procedure.body, 'input')))}'`);
  }
  return words.join(' ');
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

function bodySection(procedure: Procedure): string {
  if (procedure.method === 'GET' || procedure.body === undefined) return '';
  return `\nBody:\n\n${table(jsonSchema(procedure.body, 'input'))}`;
}

function answerSections(procedure: Procedure): string {
  const seen = new Set<unknown>();
  return Object.entries(procedure.answers)
    .filter(([, schema]) => schema !== null && !seen.has(schema) && seen.add(schema))
    .map(([status, schema]) => {
      const json = jsonSchema(schema as never, 'output');
      return json.properties === undefined ? '' : `\nAnswer ${status}:\n\n${table(json)}`;
    })
    .join('');
}

function table(schema: Json): string {
  const required = new Set(schema.required as string[] | undefined);
  const rows = Object.entries((schema.properties ?? {}) as Record<string, Json>).map(
    ([name, value]) => `| \`${name}\` | ${typeText(value)} | ${required.has(name) ? 'yes' : 'no'} |`,
  );
  return `| member | type | always |\n|---|---|---|\n${rows.join('\n')}\n`;
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
