/** One request and what came of it, as the page shows it. */
export type Exchange = {
  readonly method: string;
  readonly url: string;
  readonly requestHeaders: readonly (readonly [name: string, value: string])[];
  readonly requestBody: string | undefined;
  /** Undefined: no answer came. */
  readonly status: number | undefined;
  readonly answerHeaders: readonly (readonly [name: string, value: string])[];
  /** Undefined for a stream, which is read elsewhere. */
  readonly answerBody: string | undefined;
  readonly ms: number;
};

/** A `fetch` that tells of each exchange when its answer is there. */
export function observedFetch(tell: (exchange: Exchange) => void): typeof globalThis.fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    const requestBody = typeof init?.body === 'string' ? init.body : decoded(init?.body);
    const startedMs = performance.now();
    const about = { method: request.method, url: request.url, requestHeaders: [...request.headers], requestBody };
    try {
      const answer = await globalThis.fetch(input, init);
      const isStream = answer.headers.get('content-type')?.startsWith('text/event-stream') === true;
      const answerBody = isStream ? undefined : await answer.clone().text();
      const ms = performance.now() - startedMs;
      tell({ ...about, status: answer.status, answerHeaders: [...answer.headers], answerBody, ms });
      return answer;
    } catch (error) {
      const ms = performance.now() - startedMs;
      tell({ ...about, status: undefined, answerHeaders: [], answerBody: undefined, ms });
      throw error;
    }
  };
}

function decoded(body: unknown): string | undefined {
  return body instanceof Uint8Array || body instanceof ArrayBuffer ? new TextDecoder().decode(body) : undefined;
}

/** The exchange as a line for a POSIX shell that does the same again. */
export function curlOf({ method, url, requestHeaders, requestBody, status, answerBody }: Exchange): string {
  // A stream is shown as it comes.
  const isStream = status === 200 && answerBody === undefined;
  const parts = ['curl', isStream ? '-iN' : '-i'];
  if (method !== 'GET') parts.push('-X', method);
  parts.push(quoted(url));
  for (const [name, value] of requestHeaders) parts.push('-H', quoted(`${name}: ${value}`));
  if (requestBody !== undefined) parts.push('--data-binary', quoted(requestBody));
  return parts.join(' ');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** What is worth a mark beside the status: `replayed`, `not sent again` and so on. */
export function marksOf({ status, answerHeaders }: Exchange): string[] {
  const header = (name: string) => answerHeaders.find(([known]) => known === name)?.[1];
  const marks: string[] = [];
  if (header('idempotent-replayed') === 'true') marks.push('replayed');
  if (status === 304) marks.push('not sent again');
  if (status === undefined) marks.push('no answer');
  return marks;
}
