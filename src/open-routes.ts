import type { OpenRoute } from './app.ts';
import type { Database } from './db/pool.ts';
import type { Reply } from './http/reply.ts';
import type { Procedure } from './protocol/procedure.ts';
import { errorsHtml } from './reference/errors-page.ts';
import { openApi } from './reference/openapi.ts';

/** The version that the OpenAPI document carries; the contract's, not a build's. */
const contractVersion = '1.0.0';

function reply(status: number, type: string, body: string): Reply {
  return {
    status,
    headers: {
      'Content-Type': type,
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
    },
    body: Buffer.from(body),
  };
}

const text = (status: number, line: string) => reply(status, 'text/plain; charset=utf-8', `${line}\n`);

/** `/healthz`: the process runs. `/readyz`: it takes work; 503 while it drains or the database is away. */
export function healthRoutes(db: Database, isDraining: () => boolean): OpenRoute[] {
  return [
    { path: '/healthz', answer: () => text(200, 'ok') },
    {
      path: '/readyz',
      async answer() {
        if (isDraining()) return text(503, 'draining');
        const isUp = await db
          .query((sql) => sql`select 1`)
          .then(
            () => true,
            () => false,
          );
        return isUp ? text(200, 'ready') : text(503, 'no database');
      },
    },
  ];
}

/** `/openapi.json` and `/docs/errors`, made once from the contract. */
export function referenceRoutes(contract: Readonly<Record<string, Procedure>>): OpenRoute[] {
  const openApiReply = reply(200, 'application/json', JSON.stringify(openApi(contract, contractVersion)));
  const errorsReply = reply(200, 'text/html; charset=utf-8', errorsHtml());
  return [
    { path: '/openapi.json', answer: () => openApiReply },
    { path: '/docs/errors', answer: () => errorsReply },
  ];
}
