import { readdirSync, readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { OpenRoute } from '../app.ts';
import type { Reply } from '../http/reply.ts';
import { splitTarget } from '../http/router.ts';
import { openReply } from '../open-routes.ts';
import { parseTagList } from '../protocol/entity-tag.ts';
import { problem } from '../protocol/errors.ts';
import { judgeConditions } from '../protocol/preconditions.ts';
import { type Asset, asset, buildPage, type PageAssets } from './assets.ts';

/** A tenant that the page may act for without anybody's password. */
export type DevelopmentToken = { readonly tenant: string; readonly sub: string; readonly token: string };

/** Nothing but our own files and our own server; no script or style in the document itself. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** A chart that is opened by itself: its colours are in a style of its own, and no script is let in. */
const chartPolicy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";

const foreverCache = 'public, max-age=31536000, immutable';
const charts = fileURLToPath(new URL('../../docs/results/', import.meta.url));

/**
 * The page at `/`, its files and the benchmark's charts. `tokens` makes tokens for a page on this machine; absent: the route is
 * not there.
 */
export function pageRoutes(tokens?: () => Promise<readonly DevelopmentToken[]>): OpenRoute[] {
  let built: Promise<PageAssets> | undefined;
  // On the first visit: a server that nobody looks at never needs it.
  const page = () => {
    built ??= buildPage().catch((error: unknown) => {
      // The next visit tries again.
      built = undefined;
      throw error;
    });
    return built;
  };
  const chartFiles = readCharts();
  const routes: OpenRoute[] = [
    { path: '/', answer: async (req) => assetReply(req, (await page()).html, 'no-cache') },
    {
      path: '/assets/{name}',
      answer: async (req) => assetReply(req, (await page()).named.get(lastSegment(req)), foreverCache),
    },
    {
      path: '/charts/{name}',
      answer: (req) => assetReply(req, chartFiles.get(lastSegment(req)), 'no-cache', chartPolicy),
    },
  ];
  if (tokens !== undefined) {
    routes.push({
      path: '/dev/tokens',
      async answer(req) {
        if (!isOwnMachine(req)) throw problem('not_found');
        return openReply(200, 'application/json', JSON.stringify(await tokens()));
      },
    });
  }
  return routes;
}

function lastSegment(req: IncomingMessage): string {
  return (
    splitTarget(req.url ?? '')
      .path.split('/')
      .at(-1) ?? ''
  );
}

function assetReply(req: IncomingMessage, found: Asset | undefined, cache: string, contentPolicy = policy): Reply {
  if (found === undefined) throw problem('not_found');
  const { type, bytes, etag } = found;
  const [current] = parsedTags(etag);
  const ifNoneMatch = parseTagList(req.headersDistinct['if-none-match'] ?? []);
  const ifMatch = parseTagList([]);
  const isSame = judgeConditions({ ifMatch, ifNoneMatch, current, safe: true }) === 'not_modified';
  return {
    status: isSame ? 304 : 200,
    headers: {
      'Content-Type': type,
      'Cache-Control': cache,
      ETag: etag,
      'X-Content-Type-Options': 'nosniff',
      'Referrer-Policy': 'no-referrer',
      'Content-Security-Policy': contentPolicy,
    },
    body: isSame ? null : bytes,
  };
}

function parsedTags(line: string) {
  const list = parseTagList([line]);
  return list.kind === 'tags' ? list.tags : [];
}

/** The figures of the last benchmark, where the project's docs are beside its source. */
function readCharts(): ReadonlyMap<string, Asset> {
  const types: Readonly<Record<string, string>> = { svg: 'image/svg+xml', json: 'application/json' };
  const found = new Map<string, Asset>();
  for (const name of namesIn(charts)) {
    const type = types[name.split('.').at(-1) ?? ''];
    if (type !== undefined) found.set(name, asset(type, readFileSync(charts + name)));
  }
  return found;
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Behind a proxy everybody seems to be on this machine; each of these tells of one. */
const proxyHeaders = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip'];

/**
 * A request from this machine, by a page of ours or by no page at all. The name in Host must be this machine's too: a foreign
 * name that somebody has made resolve to 127.0.0.1 (DNS rebinding) would make our page theirs.
 */
function isOwnMachine(req: IncomingMessage): boolean {
  const { host = '', origin } = req.headers;
  const site = req.headers['sec-fetch-site'];
  if (proxyHeaders.some((name) => req.headers[name] !== undefined)) return false;
  if (origin !== undefined || (site !== undefined && site !== 'same-origin' && site !== 'none')) return false;
  const name = /^(\[[^\]]+\]|[^:]*)(?::\d+)?$/.exec(host)?.[1]?.replace(/^\[|\]$/g, '') ?? '';
  return isLoopback(req.socket.remoteAddress ?? '') && (name === 'localhost' || isLoopback(name));
}

function isLoopback(address: string): boolean {
  return isIP(address) !== 0 && /^(?:127\.|::1$|::ffff:127\.)/.test(address);
}
