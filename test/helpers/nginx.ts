import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { findProgram, freePort, runProgram } from './program.ts';

/** The path of nginx, or undefined. */
export const nginx = findProgram('nginx');

/** Starts an nginx in front of backends; `http` and `location` are lines of its configuration. Answers its URL. */
export async function startNginx(
  t: TestContext,
  backends: readonly string[],
  lines: { http?: string; location?: string } = {},
): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'retry-safe-nginx-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const port = await freePort();
  const servers = backends.map((url) => `server ${new URL(url).host} max_fails=0;`).join(' ');
  await writeFile(
    join(dir, 'nginx.conf'),
    `daemon off; master_process off; worker_processes 1; pid ${dir}/pid; error_log stderr warn;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path ${dir}/body; proxy_temp_path ${dir}/proxy; fastcgi_temp_path ${dir}/fastcgi;
  uwsgi_temp_path ${dir}/uwsgi; scgi_temp_path ${dir}/scgi;
  upstream app { ${servers} }
  ${lines.http ?? ''}
  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; ${lines.location ?? ''} }
  }
}
`,
  );
  const url = `http://127.0.0.1:${port}`;
  await runProgram(
    t,
    nginx as string,
    ['-p', dir, '-c', join(dir, 'nginx.conf')],
    async () => (await fetch(`${url}/healthz`)).ok,
  );
  return url;
}
