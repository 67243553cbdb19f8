/** Request headers a page may send. */
const allowedHeaders = [
  'Authorization',
  'Content-Type',
  'Idempotency-Key',
  'If-Match',
  'If-None-Match',
  'Last-Event-ID',
  'Prefer',
  'traceparent',
];

/** Answer headers a page may read, on errors and on 304 too. */
const exposedHeaders = [
  'Allow',
  'Accept-Patch',
  'ETag',
  'Idempotency-Expires',
  'Idempotent-Replayed',
  'Link',
  'Location',
  'Preference-Applied',
  'Retry-After',
  'retry-after-ms',
  'WWW-Authenticate',
  'X-Trace-Id',
  'x-should-retry',
];

/** Seconds a browser may remember a preflight. */
const maxAgeSeconds = 600;

function isAllowed(origins: readonly string[], origin: string): boolean {
  return origins.includes('*') || origins.includes(origin);
}

/**
 * CORS headers of any answer, which may have a `Vary` already; none when no origin is configured. Tokens travel in a header,
 * so credentials are never allowed. Every answer varies by Origin, also to those who sent none: a cache must not give it to a page.
 */
export function corsHeaders(
  origins: readonly string[],
  origin: string | undefined,
  vary: string | undefined,
): Record<string, string> {
  if (origins.length === 0) return {};
  const Vary = vary === undefined ? 'Origin' : `${vary}, Origin`;
  if (origin === undefined || !isAllowed(origins, origin)) return { Vary };
  return { Vary, 'Access-Control-Allow-Origin': origin, 'Access-Control-Expose-Headers': exposedHeaders.join(', ') };
}

/** Headers of the answer to a preflight for a path with these methods. */
export function preflightHeaders(
  origins: readonly string[],
  origin: string,
  methods: readonly string[],
): Record<string, string> {
  if (!isAllowed(origins, origin)) return {};
  return {
    'Access-Control-Allow-Origin': origin,
    'Access-Control-Allow-Methods': methods.join(', '),
    'Access-Control-Allow-Headers': allowedHeaders.join(', '),
    'Access-Control-Max-Age': String(maxAgeSeconds),
  };
}
