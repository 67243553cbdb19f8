import type { Exchange } from './exchange.ts';

/** Statuses that mean one thing here. */
const byStatus: Readonly<Record<number, string>> = {
  204: 'Done, and there is nothing more to say.',
  304: 'You have the newest already: the tag in If-None-Match is the current one, so the body is not sent again.',
  401: 'The token is missing, wrong or no longer valid.',
  402: 'The credits do not cover this model call. Nothing was started, and the key is as if never used.',
  404: 'Nothing is there for this tenant, whether it never was or belongs to somebody else.',
  428: 'The request does not say which version it means to change. Send If-Match with the tag that was read.',
  429: 'Too many at once: send it again after Retry-After, with the same key.',
  503: 'Not now: send it again after Retry-After, with the same key.',
};

/** Codes of errors that share a status, and some that say more than their status. */
const byCode: Readonly<Record<string, string>> = {
  request_in_progress:
    'The first request with this key still runs. This copy was not run as well, and did not wait: ask again after Retry-After.',
  idempotency_key_reused:
    'This key stands for another request; differs says in what. Nothing was run: a new intent needs a new key.',
  idempotency_key_expired:
    'The answer of this key is no longer kept, so it is not known here what became of it. Look first.',
  precondition_failed:
    'Somebody changed it since you read it. Nothing was overwritten; ETag is the tag of the version that is there now.',
};

/** What an answer means, in a sentence for somebody who meets it for the first time; undefined where its status says it. */
export function meaningOf({ status, answerHeaders, answerBody }: Exchange): string | undefined {
  if (status === undefined) {
    return 'No answer came, so nobody knows whether it has run. Sending it again with the same key is safe.';
  }
  const replayed = answerHeaders.find(([name]) => name === 'idempotent-replayed')?.[1];
  if (replayed === 'true') return 'A replay: nothing was run, this is the stored first answer, byte for byte.';
  return byCode[codeOf(answerBody)] ?? byStatus[status];
}

function codeOf(body: string | undefined): string {
  try {
    const { code } = JSON.parse(body ?? '') as { code?: unknown };
    return typeof code === 'string' ? code : '';
  } catch {
    return '';
  }
}
