import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

/** What the page consists of; the script and the style are named by their content. */
export type PageAssets = {
  readonly html: Asset;
  /** By the name in `/assets/…`. */
  readonly named: ReadonlyMap<string, Asset>;
};

/** A file as it is sent. */
export type Asset = {
  readonly type: string;
  readonly bytes: Uint8Array;
  /** Strong: the same bytes have the same tag. */
  readonly etag: string;
};

const web = (name: string) => fileURLToPath(new URL(`./web/${name}`, import.meta.url));

/** An asset with the tag of its bytes. */
export function asset(type: string, bytes: Uint8Array): Asset {
  return { type, bytes, etag: `"${digest(bytes)}"` };
}

/**
 * Puts the page together from its sources: TypeScript loses its types and its modules become one, unminified, so that it can
 * be read in the browser as well.
 */
export async function buildPage(): Promise<PageAssets> {
  const [script, style, html] = await Promise.all([
    bundle(web('main.ts')),
    readFile(web('page.css')),
    readFile(web('index.html'), 'utf8'),
  ]);
  const scriptName = `page-${digest(script)}.js`;
  const styleName = `page-${digest(style)}.css`;
  const page = html.replace('{script}', `/assets/${scriptName}`).replace('{style}', `/assets/${styleName}`);
  return {
    html: asset('text/html; charset=utf-8', Buffer.from(page)),
    named: new Map([
      [scriptName, asset('text/javascript; charset=utf-8', script)],
      [styleName, asset('text/css; charset=utf-8', style)],
    ]),
  };
}

async function bundle(entry: string): Promise<Uint8Array> {
  // Loaded by the first visit: who only serves the API starts without it.
  const { build } = await import('esbuild');
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: 'esm',
    target: 'es2022',
    charset: 'utf8',
    logLevel: 'silent',
  });
  return outputFiles[0]?.contents ?? new Uint8Array();
}

function digest(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('base64url').slice(0, 22);
}
