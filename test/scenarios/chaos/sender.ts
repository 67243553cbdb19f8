import { CallError, type CallInput, createTableClient, type TokenSource } from '../../../src/client/index.ts';
import type { Intent as KeyedIntent } from '../../../src/client/intent.ts';
import { contract } from '../../../src/protocol/contract.ts';
import type { Answered, Intent, NetworkFault, Try } from './history.ts';
import { networkHeader } from './network.ts';

/** Where tries go: each picks a server anew, as behind a load balancer. */
export type Address = { readonly name: string; readonly url: string };

/** What sending needs of the run. */
export type SenderParts = {
  /** The next try's server: another than the one that has just given no answer. */
  route(silent?: string): Address;
  /** What the network does to it. */
  network(): NetworkFault;
  token(tenant: string): TokenSource;
  nowMs(): number;
  record(entry: Try): void;
};

/** How a copy is sent. */
export type Sending = {
  readonly copy: number;
  readonly calm: boolean;
  /** The first try's fault; default: drawn like the others'. */
  readonly firstFault?: NetworkFault;
  /** The client gives up for good after so long. */
  readonly budgetMs: number;
  /** And waits so long for an answer. */
  readonly limitMs: number;
  readonly signal?: AbortSignal;
};

/** A request that can be sent any number of times: what the retrying client calls an intent, or the input of a PUT without a key. */
export type Request =
  | { readonly keyed: KeyedIntent }
  | { readonly procedure: 'putDoc'; readonly input: CallInput<typeof contract.putDoc> }
  | { readonly procedure: 'deleteDoc'; readonly input: CallInput<typeof contract.deleteDoc> };

/** Limit of a try that the network lets hang: nobody learns anything from waiting longer. Milliseconds. */
const hangLimitMs = 700;
/** A timer may fire so much before its time, by another clock. Milliseconds. */
const timerSlackMs = 20;
/** Any address: each try is sent to one that is drawn. */
const somewhere = 'http://somewhere.invalid';

/** A client that only makes intents, and sends nothing. */
export const intents = createTableClient(contract, { baseUrl: somewhere, token: 'none' });

/** Sends one copy of an intent with a retrying client of its own and writes down every try. Resolves when the client is done with it. */
export async function sendCopy(parts: SenderParts, intent: Intent, request: Request, sending: Sending): Promise<void> {
  let tries = 0;
  let silent: string | undefined;
  const recordingFetch: typeof fetch = async (input, init = {}) => {
    const { name, url } = parts.route(silent);
    silent = undefined;
    const network = tries === 0 && sending.firstFault !== undefined ? sending.firstFault : parts.network();
    tries += 1;
    const limitMs = network === 'hang' ? Math.min(hangLimitMs, sending.limitMs) : sending.limitMs;
    const fromMs = parts.nowMs();
    const record = (end: Try['end']) =>
      parts.record({
        intent: intent.id,
        ...pick(sending),
        server: name,
        network,
        fromMs,
        toMs: parts.nowMs(),
        limitMs,
        end,
      });
    const headers = new Headers(init.headers);
    headers.set(networkHeader, network);
    if (intent.key === undefined) headers.delete('idempotency-key');
    const signals = [
      ...(init.signal ? [init.signal] : []),
      ...(network === 'hang' ? [AbortSignal.timeout(limitMs)] : []),
    ];
    try {
      const target = String(input).replace(somewhere, url);
      const response = await fetch(target, { ...init, headers, signal: AbortSignal.any(signals) });
      const body = await response.clone().text();
      record(answered(response, body));
      return response;
    } catch (error) {
      silent = name;
      const isLate = parts.nowMs() - fromMs > limitMs - timerSlackMs;
      record({ kind: 'no_answer', reason: isLate ? 'timed_out' : sending.signal?.aborted ? 'given_up' : 'connection' });
      throw error;
    }
  };
  const client = createTableClient(contract, {
    baseUrl: somewhere,
    token: parts.token(intent.tenant),
    fetch: recordingFetch,
    patience: {
      budgetMs: sending.budgetMs,
      attemptTimeoutMs: sending.limitMs,
      backOffMs: 200,
      maxBackOffMs: 1_500,
    },
  });
  const run = sending.signal === undefined ? {} : { signal: sending.signal };
  try {
    if ('keyed' in request) await client.run(request.keyed as never, run);
    else if (request.procedure === 'putDoc') await client.call('putDoc', request.input, run);
    else await client.call('deleteDoc', request.input, run);
  } catch (error) {
    // What came of each try is in the log.
    if (!(error instanceof CallError)) throw error;
  }
}

function pick({ copy, calm }: Sending) {
  return { copy, calm };
}

function answered(response: Response, body: string): Answered {
  const { headers, status } = response;
  const kept = ['location', 'link', 'etag'].map((name) => headers.get(name) ?? '-').join(' ');
  return {
    kind: 'answered',
    status,
    body,
    code: status >= 400 ? (/"code":"([a-z_]+)"/.exec(body)?.[1] ?? 'none') : undefined,
    replayed: (headers.get('idempotent-replayed') ?? undefined) as Answered['replayed'],
    headers: kept,
  };
}
