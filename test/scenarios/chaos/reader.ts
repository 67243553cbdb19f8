import { CallError, createClient } from '../../../src/client/index.ts';
import type { SharedDoc } from './intents.ts';
import type { SenderParts } from './sender.ts';

/** A version of a document as it was read. */
export type ReadDoc = {
  readonly id: string;
  readonly title: string;
  readonly body: string;
  readonly version: number;
  readonly tag: string;
};

type ReaderParts = Pick<SenderParts, 'route' | 'token'> & {
  onSeen(tenant: string, doc: { id: string; version: number; body: string }): void;
};

/** Milliseconds a reader tries. */
const budgetMs = 2_000;

/** Reads a document from some server; undefined when none answers in time. */
export async function readDoc(parts: ReaderParts, { tenant, id }: SharedDoc): Promise<ReadDoc | undefined> {
  const client = createClient({
    baseUrl: parts.route().url,
    token: parts.token(tenant),
    patience: { budgetMs, attemptTimeoutMs: budgetMs / 2, backOffMs: 100 },
  });
  try {
    const { body, tag } = await client.call('getDoc', { params: { id } });
    parts.onSeen(tenant, body);
    return { id, title: body.title, body: body.body, version: body.version, tag: tag ?? body.etag };
  } catch (error) {
    if (error instanceof CallError) return undefined;
    throw error;
  }
}
