import type { OpenRoute } from './app.ts';
import type { Database } from './db/pool.ts';
import type { Reply } from './http/reply.ts';
import { errorsHtml } from './reference/errors-page.ts';

/** An answer for whoever asks, a page or a program. */
export function openReply(status: number, type: string, body: string): Reply {
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

const text = (status: number, line: string) => openReply(status, 'text/plain; charset=utf-8', `${line}\n`);

/** `/healthz`: the process runs. `/readyz`: it takes work; 503 while it drains or the database is away. */
export function healthRoutes(db: Database, isDraining: () => boolean): OpenRoute[] {
  const ok = text(200, 'ok');
  return [
    { path: '/healthz', answer: () => ok },
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

/** `/docs/errors`: what the `type` of a problem leads to. */
export function errorsRoute(): OpenRoute {
  const page = openReply(200, 'text/html; charset=utf-8', errorsHtml());
  return { path: '/docs/errors', answer: () => page };
}
