import { signToken } from '../../src/auth/tokens.ts';
import type { BenchDatabase, Cluster } from './cluster.ts';
import { benchSecret, type ServerProcess } from './server-process.ts';

/** Everything a comparison plays on: a fresh server process on a fresh database. */
export type Stage = {
  readonly cluster: Cluster;
  readonly database: BenchDatabase;
  readonly server: ServerProcess;
  /** `Authorization` of the tenant that everything is measured with. */
  readonly headers: Readonly<Record<string, string>>;
  /** One request, read whole. */
  call(line: string, options?: { headers?: Record<string, string>; body?: unknown }): Promise<Called>;
  /** Aborts when the run ends early. */
  readonly signal: AbortSignal;
};

/** An answer, read whole. */
export type Called = { readonly status: number; readonly headers: Headers; readonly text: string };

/** The tenant of everything that is measured. */
export const tenant = 'acme';
/** Longer than any run. Seconds. */
const tokenTtlSeconds = 86_400;

/** A stage on a running server. */
export async function openStage(
  cluster: Cluster,
  database: BenchDatabase,
  server: ServerProcess,
  signal: AbortSignal,
): Promise<Stage> {
  const token = await signToken(benchSecret, { tenant, sub: 'bench', scope: 'credits:write' }, tokenTtlSeconds);
  const headers = { Authorization: `Bearer ${token}` };
  return {
    cluster,
    database,
    server,
    headers,
    signal,
    async call(line, options = {}) {
      const [method = 'GET', path = '/'] = line.split(' ');
      const hasBody = options.body !== undefined;
      const response = await fetch(server.url + path, {
        method,
        headers: { ...headers, ...(hasBody ? { 'Content-Type': 'application/json' } : {}), ...options.headers },
        ...(hasBody ? { body: JSON.stringify(options.body) } : {}),
        signal,
      });
      return { status: response.status, headers: response.headers, text: await response.text() };
    },
  };
}
