import assert from 'node:assert/strict';
import { createEventParser } from '../../src/protocol/event-parser.ts';
import { type Called, call, testToken } from './server.ts';

/** One event of a job's stream with its data read. */
export type StreamEvent = {
  readonly id: string;
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test asserts on whatever is there.
  readonly data: any;
};

/** A stream that is being read. */
export type JobStream = {
  readonly response: Response;
  /** All that came so far, byte for byte. */
  readonly text: () => string;
  /** The next event; undefined at the end. */
  next(): Promise<StreamEvent | undefined>;
  /** Reads on until an event is of this name, and answers it. */
  until(event: string): Promise<StreamEvent>;
  /** Reads to the end and answers all events, those read before too. */
  rest(): Promise<readonly StreamEvent[]>;
  /** Leaves in the middle. */
  cut(): void;
};

/** Where streams are opened: any server, in this process or another. */
type Host = { readonly url: string };

/** Opens the stream of a job, as a client would. */
export async function openStream(
  host: Host,
  jobId: string,
  options: { lastEventId?: string; after?: string; tenant?: string; headers?: Record<string, string> } = {},
): Promise<JobStream> {
  const abort = new AbortController();
  const query = options.after === undefined ? '' : `?after=${options.after}`;
  const response = await fetch(`${host.url}/v1/jobs/${jobId}/events${query}`, {
    headers: {
      authorization: `Bearer ${await testToken(options.tenant === undefined ? {} : { tenant: options.tenant })}`,
      ...(options.lastEventId === undefined ? {} : { 'last-event-id': options.lastEventId }),
      ...options.headers,
    },
    signal: abort.signal,
  });
  assert.equal(response.status, 200);
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const parser = createEventParser();
  const chunks: Uint8Array[] = [];
  const seen: StreamEvent[] = [];
  const waiting: StreamEvent[] = [];
  const next = async () => {
    while (waiting.length === 0) {
      const { done, value } = await reader.read();
      if (done) return undefined;
      chunks.push(value);
      for (const { id, event, data } of parser.push(value)) waiting.push({ id, event, data: JSON.parse(data) });
    }
    const event = waiting.shift() as StreamEvent;
    seen.push(event);
    return event;
  };
  return {
    response,
    text: () => Buffer.concat(chunks).toString(),
    next,
    async until(name) {
      for (let event = await next(); event !== undefined; event = await next()) if (event.event === name) return event;
      throw new Error(`the stream ended without ${name}`);
    },
    async rest() {
      while ((await next()) !== undefined);
      return seen;
    },
    cut: () => abort.abort(),
  };
}

/** The text that a reader has at the end: a `reset` throws away what came before it. */
export function textOf(events: readonly StreamEvent[]): string {
  let text = '';
  for (const { event, data } of events) {
    if (event === 'reset') text = '';
    if (event === 'delta') text += data.text;
  }
  return text;
}

/** Posts a job. */
export function postJob(
  host: Host,
  key: string,
  prompt: string,
  options: { maxTokens?: number; tenant?: string } = {},
): Promise<Called> {
  const { tenant = 'acme', maxTokens } = options;
  const body = { kind: 'generate', prompt, ...(maxTokens === undefined ? {} : { max_tokens: maxTokens }) };
  return call(host.url, 'POST /v1/jobs', { key, tenant, body });
}

/** Posts a job that must be accepted, and answers its id. */
export async function createJob(
  host: Host,
  key: string,
  prompt: string,
  options: { maxTokens?: number; tenant?: string } = {},
): Promise<string> {
  const { status, json } = await postJob(host, key, prompt, options);
  assert.equal(status, 202);
  return json.job_id;
}

/** Follows a job to its end and answers it. */
// biome-ignore lint/suspicious/noExplicitAny: a test asserts on whatever is there.
export async function ended(host: Host, jobId: string): Promise<any> {
  await (await openStream(host, jobId)).rest();
  return (await call(host.url, `GET /v1/jobs/${jobId}`)).json;
}

/** Gives a tenant credits. */
export async function topUp(host: Host, amount_micros: number, tenant = 'acme'): Promise<void> {
  const key = `top-up-${amount_micros}-${tenant}`;
  const { status } = await call(host.url, 'POST /v1/credits', {
    tenant,
    scope: 'credits:write',
    key,
    body: { amount_micros },
  });
  assert.equal(status, 201);
}

/** A tenant's whole ledger; checks that it adds up. */
export async function ledgerOf(host: Host, tenant = 'acme') {
  type Item = {
    kind: string;
    amount_micros: number;
    source_type: string;
    source_id: string;
    unknown_attempts?: number;
  };
  const items: Item[] = [];
  let after = '';
  let balances = { balance_micros: 0, held_micros: 0 };
  do {
    const { json } = await call(host.url, `GET /v1/ledger?limit=100${after}`, { tenant });
    items.push(...json.items);
    balances = { balance_micros: json.balance_micros, held_micros: json.held_micros };
    after = json.next === null ? '' : `&after=${json.next}`;
  } while (after !== '');
  const sum = items.reduce((total, item) => total + item.amount_micros, 0);
  assert.equal(sum, balances.balance_micros, 'the balance is the sum of the ledger');
  assert.ok(balances.balance_micros >= 0);
  return { ...balances, items, of: (sourceId: string) => items.filter((item) => item.source_id === sourceId) };
}
