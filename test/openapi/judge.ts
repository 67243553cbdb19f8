import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formatsOf from 'ajv-formats';

/** An answer as it came; header names in lower case. */
export type Answer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly text: string;
};

// biome-ignore lint/suspicious/noExplicitAny: the document is judged as whatever it is.
type Document = any;

/** Headers of the connection and of the body's framing, which no OpenAPI document lists. */
const ofTransport = ['connection', 'content-length', 'content-type', 'date', 'keep-alive', 'transfer-encoding'];

/** Judges answers by an OpenAPI document alone. */
export type Judge = {
  /** What is wrong with the answer to this operation; empty: nothing. */
  judge(method: string, path: string, answer: Answer): readonly string[];
  /** `status`, or `status code` for each error code, of all that the document lists for an operation. */
  listed(method: string, path: string): readonly string[];
  /** What is wrong with a value by a schema of the document. */
  violations(pointer: string, value: unknown): readonly string[];
};

/** A judge with JSON Schema 2020-12, which OpenAPI 3.1 schemas are. */
export function createJudge(document: Document): Judge {
  // Keywords of OpenAPI around the schemas are not for ajv.
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  formatsOf.default(ajv);
  ajv.addSchema(document, 'document');
  const compiled = new Map<string, ValidateFunction>();

  const violations = (pointer: string, value: unknown): string[] => {
    const validate = compiled.get(pointer) ?? ajv.compile({ $ref: `document#${pointer}` });
    compiled.set(pointer, validate);
    return validate(value) ? [] : (validate.errors ?? []).map((error) => `${error.instancePath} ${error.message}`);
  };
  const resolve = (value: Document): Document =>
    value?.$ref === undefined
      ? value
      : value.$ref
          .slice(2)
          .split('/')
          .reduce((node: Document, name: string) => node[name], document);
  const pointerOf = (...names: string[]) =>
    names.map((name) => `/${encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'))}`).join('');

  const judgeHeaders = (response: Document, base: string[], answer: Answer): string[] => {
    const declared = Object.keys(response.headers ?? {});
    const names = new Set(declared.map((name) => name.toLowerCase()));
    const unlisted = Object.keys(answer.headers).filter((name) => !names.has(name) && !ofTransport.includes(name));
    const wrong = declared.flatMap((name) => {
      const { required, schema } = resolve(response.headers[name]);
      const value = answer.headers[name.toLowerCase()];
      if (value === undefined) return required === true ? [`${name} is missing`] : [];
      const { $ref } = response.headers[name];
      const pointer = $ref === undefined ? pointerOf(...base, 'headers', name, 'schema') : `${$ref.slice(1)}/schema`;
      return violations(pointer, schema.type === 'integer' ? Number(value) : value).map((text) => `${name}: ${text}`);
    });
    return [...unlisted.map((name) => `${name} is not listed`), ...wrong];
  };

  const judgeBody = (response: Document, base: string[], answer: Answer): string[] => {
    const media = answer.headers['content-type']?.split(';')[0];
    const listed = Object.keys(response.content ?? {});
    // The answer to a HEAD names the type of what a GET would get, and has none.
    if (base.includes('head')) return [];
    if (listed.length === 0) return answer.text === '' && media === undefined ? [] : ['there is a body'];
    if (media === undefined || !listed.includes(media)) return [`${media} is not one of ${listed}`];
    const value = media.endsWith('json') ? JSON.parse(answer.text) : answer.text;
    const wrong = violations(pointerOf(...base, 'content', media, 'schema'), value);
    if (media !== 'application/problem+json') return wrong;
    // The schema is open, so that clients take what later versions add; this version has no more than it lists.
    const known = Object.keys(document.components.schemas.Problem.properties);
    const unknown = Object.keys(value).filter((name) => !known.includes(name));
    return [...wrong, ...unknown.map((name) => `the member ${name} is not listed`)];
  };

  return {
    violations,
    judge(method, path, answer) {
      const base = ['paths', path, method.toLowerCase(), 'responses', String(answer.status)];
      const response = base.reduce((node: Document, name) => resolve(node?.[name]), document);
      if (response === undefined) return [`${answer.status} is not listed`];
      return [...judgeHeaders(response, base, answer), ...judgeBody(response, base, answer)];
    },
    listed(method, path) {
      const { responses } = document.paths[path][method.toLowerCase()];
      return Object.entries<Document>(responses).flatMap(([status, response]) => {
        const schema = resolve(response).content?.['application/problem+json']?.schema;
        if (schema === undefined) return [status];
        return (schema.oneOf ?? [schema]).map(
          (variant: Document) => `${status} ${resolve(variant).allOf[1].properties.code.const}`,
        );
      });
    },
  };
}
