type Json = Record<string, unknown>;

const textHeader = (description: string, schema: Json = { type: 'string' }) => ({ description, schema });

/** Every header of an answer that is ours, by its name on the wire. */
const headers = {
  'X-Trace-Id': textHeader('The trace id of this request, also in the body of an error.', {
    type: 'string',
    pattern: '^[0-9a-f]{32}$',
  }),
  ETag: textHeader('The version of what was answered; after a 412 the current one.', {
    type: 'string',
    pattern: '^(W/)?"[^"]*"$',
  }),
  'Cache-Control': textHeader('`private, no-cache` for what has a tag, else `no-store`.'),
  Vary: textHeader('`Authorization`: every tenant has its own.'),
  Location: textHeader('Where the thing that was made can be read.', { type: 'string', format: 'uri-reference' }),
  Link: textHeader('Related resources, such as the events of a job.'),
  'X-Accel-Buffering': textHeader('`no`: proxies must not collect the events.', { type: 'string', enum: ['no'] }),
  'Idempotent-Replayed': textHeader('`true` on a stored answer, `false` on a first execution.', {
    type: 'string',
    enum: ['true', 'false'],
  }),
  'Idempotency-Expires': textHeader('Until when the answer is kept (RFC 3339).', {
    type: 'string',
    format: 'date-time',
  }),
  'Preference-Applied': textHeader('`wait=N`: the request was parked, for N seconds at most.', {
    type: 'string',
    pattern: '^wait=[0-9]+$',
  }),
  'Retry-After': textHeader('Seconds until a retry may help.', { type: 'integer', minimum: 1, maximum: 60 }),
  'retry-after-ms': textHeader('The same in milliseconds.', { type: 'integer', minimum: 1 }),
  'x-should-retry': textHeader('`false`: a retry cannot help although the status is one that SDKs retry.', {
    type: 'string',
    enum: ['false'],
  }),
  'WWW-Authenticate': textHeader('The scheme that is asked for (RFC 6750).'),
  Accept: textHeader('The media type that the route takes.'),
  'Accept-Patch': textHeader('The media type of a patch (RFC 5789).'),
} as const satisfies Readonly<Record<string, Json>>;

/** A header of an answer. */
export type HeaderName = keyof typeof headers;

/** `components.headers`: each header as it is where it is always there, and as it is where it may be. */
export const headerComponents: Json = Object.fromEntries(
  Object.entries(headers).flatMap(([name, header]) => [
    [componentName(name, true), { ...header, required: true }],
    [componentName(name, false), header],
  ]),
);

/** The `headers` of a response; the value says whether the header is always there. */
export function headerRefs(always: Partial<Record<HeaderName, boolean>>): Json {
  return Object.fromEntries(
    Object.entries(always).map(([name, isAlways]) => [
      name,
      { $ref: `#/components/headers/${componentName(name, isAlways)}` },
    ]),
  );
}

function componentName(name: string, isAlways: boolean): string {
  const words = name.split('-').map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return `${isAlways ? '' : 'Optional'}${words.join('')}`;
}
