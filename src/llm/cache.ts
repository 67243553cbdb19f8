import { createHash } from 'node:crypto';
import type { Finish, ModelCall, Piece, Provider } from './provider.ts';

type CacheOptions = {
  readonly maxEntries: number;
  /** Bounds the texts held, in UTF-16 bytes. */
  readonly maxBytes: number;
};

type Answer = { readonly text: string; readonly finish: Finish };

/**
 * Puts a cache of results in front of a provider: "must the model be asked again?" (it saves money), which is another
 * question than an entity tag's "must the bytes be sent again?" (that saves traffic).
 *
 * Only whole answers of calls at temperature 0 that name their `cacheScope` are kept, by digest of scope, model, prompt and
 * `maxTokens`; the least recently used go first. A hit is one piece and `cached: true` with a usage of zero: nothing was sent.
 * Two calls at the same moment are two calls.
 */
export function withCache(provider: Provider, { maxEntries, maxBytes }: CacheOptions): Provider {
  const answers = new Map<string, Answer>();
  let heldBytes = 0;

  function drop(key: string): Answer | undefined {
    const answer = answers.get(key);
    if (answer === undefined || !answers.delete(key)) return undefined;
    heldBytes -= sizeOf(answer);
    return answer;
  }
  function keep(key: string, answer: Answer): void {
    drop(key);
    if (sizeOf(answer) > maxBytes) return;
    answers.set(key, answer);
    heldBytes += sizeOf(answer);
    while (answers.size > maxEntries || heldBytes > maxBytes) drop(answers.keys().next().value!);
  }

  async function* generate(call: ModelCall): AsyncGenerator<Piece> {
    const key = cacheKey(provider.name, call);
    if (key === undefined) return yield* provider.generate(call);
    call.signal.throwIfAborted();
    const hit = drop(key);
    if (hit !== undefined) {
      // Put back at the end: the map's order is the order of last use.
      keep(key, hit);
      yield { kind: 'text', text: hit.text };
      yield { kind: 'end', finish: hit.finish, usage: { promptTokens: 0, completionTokens: 0 }, cached: true };
      return;
    }
    let text = '';
    for await (const piece of provider.generate(call)) {
      if (piece.kind === 'text') text += piece.text;
      else keep(key, { text, finish: piece.finish });
      yield piece;
    }
  }

  return { name: provider.name, generate };
}

function cacheKey(model: string, call: ModelCall): string | undefined {
  if (call.temperature !== 0 || call.cacheScope === undefined) return undefined;
  // As JSON: keeps the parts apart and lone surrogates distinct.
  const parts = JSON.stringify([call.cacheScope, model, call.prompt, call.maxTokens]);
  return createHash('sha256').update(parts).digest('base64');
}

function sizeOf(answer: Answer): number {
  return answer.text.length * 2;
}
