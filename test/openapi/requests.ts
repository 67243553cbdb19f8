import assert from 'node:assert/strict';
import { Agent, request as httpRequest } from 'node:http';
import type { Contract } from '../../src/protocol/contract.ts';
import { testToken } from '../helpers/server.ts';
import type { Answer } from './judge.ts';

/** A request as it is sent; header names in lower case. */
export type Sent = {
  readonly method: string;
  readonly path: string;
  readonly tenant: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body?: string | undefined;
  /** False: no Host header. */
  readonly hasHost?: false;
};

/** Where requests go. */
export type Door = { readonly url: string; send(sent: Sent): Promise<Answer> };

/** Sends requests over kept-alive connections, and sends exactly what it is told to. */
export function openDoor(url: string): Door & { close(): void } {
  const agent = new Agent({ keepAlive: true });
  return {
    url,
    close: () => agent.destroy(),
    send: ({ method, path, headers, body, hasHost }) =>
      new Promise((resolve, reject) => {
        const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
        const given = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
        const outgoing = httpRequest(url + path, {
          method,
          agent,
          setHost: hasHost !== false,
          headers: { ...length, ...given } as Record<string, string>,
        });
        outgoing.on('error', reject);
        outgoing.on('response', (response) => {
          const lines = response.headers as Record<string, string | undefined>;
          const status = response.statusCode ?? 0;
          // What the HTTP parser refuses, it refuses with a body, not having read so far as to know of the HEAD.
          if (method === 'HEAD') resolve({ status, headers: lines, text: '' });
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.on('error', reject);
          response.on('end', () => {
            resolve({ status, headers: lines, text: Buffer.concat(chunks).toString() });
          });
        });
        outgoing.end(body);
      }),
  };
}

/** A request with a token, a fresh key where it writes, and its body as JSON. */
async function sent(tenant: string, line: string, body?: unknown, headers: Record<string, string> = {}): Promise<Sent> {
  const [method = '', path = ''] = line.split(' ');
  return {
    method,
    path,
    tenant,
    body: body === undefined ? undefined : JSON.stringify(body),
    headers: {
      authorization: `Bearer ${await testToken({ tenant, scope: 'credits:write' })}`,
      ...(method === 'GET' ? {} : { 'idempotency-key': freshKey() }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
  };
}

let keys = 0;
/** A key that no request had before. */
export function freshKey(): string {
  keys += 1;
  return `key-${keys}`;
}

/** Sends what must succeed, and answers its body. */
// biome-ignore lint/suspicious/noExplicitAny: a test takes from it what it needs.
async function made(door: Door, request: Sent): Promise<any> {
  const { status, text } = await door.send(request);
  assert.ok(status < 300, `${request.method} ${request.path}: ${status} ${text}`);
  return JSON.parse(text);
}

type Success = (door: Door, tenant: string) => Promise<Sent>;

const postOrder: Success = (_door, tenant) => sent(tenant, 'POST /v1/orders', { cents: 499, item: 'tea' });
const postDoc: Success = (_door, tenant) => sent(tenant, 'POST /v1/docs', { title: 'Notes', body: 'milk' });
const postJob: Success = (_door, tenant) => sent(tenant, 'POST /v1/jobs', { kind: 'generate', prompt: 'a haiku' });
const get =
  (path: string): Success =>
  (_door, tenant) =>
    sent(tenant, `GET ${path}`);
const atOrder: Success = async (door, tenant) =>
  await sent(tenant, `GET /v1/orders/${(await made(door, await postOrder(door, tenant))).order_id}`);
const atJob =
  (method: string, suffix: string): Success =>
  async (door, tenant) =>
    await sent(tenant, `${method} /v1/jobs/${(await made(door, await postJob(door, tenant))).job_id}${suffix}`);
/** A job that still runs would change between two looks. */
const atEndedJob: Success = async (door, tenant) => {
  const events = await atJob('GET', '/events')(door, tenant);
  await door.send(events);
  return { ...events, path: events.path.replace('/events', '') };
};
const atDoc =
  (method: string, suffix = '', body?: unknown, headers: Record<string, string> = {}): Success =>
  async (door, tenant) => {
    const doc = await made(door, await postDoc(door, tenant));
    const condition: Record<string, string> = method === 'GET' ? {} : { 'if-match': doc.etag };
    return await sent(tenant, `${method} /v1/docs/${doc.id}${suffix}`, body, { ...condition, ...headers });
  };

/**
 * For each operation and each of its success statuses a request that gets it, made anew with whatever it needs. A new
 * operation or status without its request does not compile.
 */
export const successes: {
  readonly [Name in keyof Contract]: { readonly [Status in keyof Contract[Name]['answers']]: Success };
} = {
  createOrder: { 201: postOrder },
  listOrders: { 200: get('/v1/orders') },
  getOrder: { 200: atOrder },
  createDoc: { 201: postDoc },
  listDocs: { 200: get('/v1/docs?limit=1') },
  getDoc: { 200: atDoc('GET') },
  putDoc: {
    200: atDoc('PUT', '', { title: 'Notes', body: 'bread' }),
    201: (_door, tenant) =>
      sent(tenant, `PUT /v1/docs/${freshKey()}`, { title: 'Notes', body: 'milk' }, { 'if-none-match': '*' }),
  },
  patchDoc: { 200: atDoc('PATCH', '', { title: 'Notes' }, { 'content-type': 'application/merge-patch+json' }) },
  deleteDoc: { 204: atDoc('DELETE') },
  rewriteDoc: { 200: atDoc('POST', '/rewrite', { instruction: 'Shorter.' }) },
  createJob: { 202: postJob },
  listJobs: { 200: get('/v1/jobs?status=succeeded') },
  getJob: { 200: atEndedJob },
  getJobEvents: {
    200: atJob('GET', '/events'),
    204: async (door, tenant) => {
      const events = await atJob('GET', '/events')(door, tenant);
      const { text } = await door.send(events);
      const last = [...text.matchAll(/^id: ?([0-9]+)$/gm)].at(-1)?.[1];
      return { ...events, headers: { ...events.headers, 'last-event-id': last } };
    },
  },
  cancelJob: { 200: atJob('PUT', '/cancellation') },
  addCredits: { 201: (_door, tenant) => sent(tenant, 'POST /v1/credits', { amount_micros: 1_000_000 }) },
  listLedger: { 200: get('/v1/ledger') },
  getIdempotencyKey: {
    200: async (door, tenant) => {
      const order = await postOrder(door, tenant);
      await made(door, order);
      return await sent(tenant, `GET /v1/idempotency-keys/${order.headers['idempotency-key']}`);
    },
  },
};

/** Gives a tenant credits. */
export async function giveCredits(door: Door, tenant: string): Promise<void> {
  await made(door, await successes.addCredits[201](door, tenant));
}

/** An order under a key of the caller's choice. */
export async function orderWith(door: Door, tenant: string, key: string): Promise<void> {
  const order = await postOrder(door, tenant);
  await made(door, { ...order, headers: { ...order.headers, 'idempotency-key': key } });
}
