import { cutOff } from './failures.ts';
import { type Finish, type ModelCall, ModelError, type Piece, type Provider, type Usage } from './provider.ts';
import { estimatePromptTokens } from './tokens.ts';

/** UTF-16 units of one answer, 1,024 for each of the most tokens a caller may ask for: a provider that never ends is cut here. */
const MAX_ANSWER_LENGTH = 4_194_304;

/** Tokens to pay for. `estimated`: the provider did not say; they are counted pieces and an estimate of the prompt. */
export type CountedUsage = Usage & { readonly estimated: boolean };

/**
 * How a call ended. Whatever the end, `text` and `usage` are what was received until then: nothing paid is lost.
 * `sent`: the call left this process and counts as an attempt.
 * - `answered`: the answer ended properly. From a cache, nothing was sent and its usage is zero.
 * - `failed`: the provider's trouble, or a time-out; `error` says whether to try again and whether the outcome is unknown.
 * - `aborted`: the caller's own doing; `reason` is its signal's, or what its `onPiece` threw.
 */
export type ModelRun = { readonly text: string; readonly usage: CountedUsage; readonly sent: boolean } & (
  | { readonly kind: 'answered'; readonly finish: Finish; readonly cached: boolean }
  | { readonly kind: 'failed'; readonly error: ModelError }
  | { readonly kind: 'aborted'; readonly reason: unknown }
);

type RunOptions = {
  /** Bounds the whole call; silence of a third of it ends the call, too. Time spent in `onPiece` is no silence. */
  readonly timeoutMs: number;
  /** Gets each text in order with its count of tokens; awaited, so a slow one slows the reading down. Throwing ends the call. */
  readonly onPiece?: (text: string, tokens: number) => void | Promise<void>;
};

/**
 * Calls the model once and tells how it ended; it makes no second try.
 * Throws only what is a fault of the provider's code. Needs no connection and must be given none.
 */
export async function runModel(provider: Provider, call: ModelCall, options: RunOptions): Promise<ModelRun> {
  const received = { text: '', tokens: 0, sent: false };
  const soFar = () => ({
    text: received.text,
    usage: countUsage(call.prompt, received.tokens, received.tokens > 0),
    sent: received.sent,
  });
  if (call.signal.aborted) return { kind: 'aborted', reason: call.signal.reason, ...soFar() };

  // What ends the call from this side; the first one wins.
  const stop = new AbortController();
  const forward = () => stop.abort(call.signal.reason);
  call.signal.addEventListener('abort', forward, { once: true });
  let timeOut: ModelError | undefined;
  const timers = startTimers(options.timeoutMs, (message) => {
    timeOut = timedOut(message, received.sent);
    stop.abort(timeOut);
  });
  let refusal: { readonly reason: unknown } | undefined;
  const onSent = () => {
    received.sent = true;
    call.onSent?.();
  };
  try {
    for await (const piece of provider.generate({ ...call, signal: stop.signal, onSent })) {
      timers.heard();
      if (piece.kind === 'end') return answered(piece, soFar(), call.prompt);
      if (piece.text === '') continue;
      received.text += piece.text;
      received.tokens += piece.tokens ?? 1;
      if (options.onPiece !== undefined) {
        timers.pause();
        try {
          await options.onPiece(piece.text, piece.tokens ?? 1);
        } catch (reason) {
          refusal = { reason };
          throw reason;
        }
        timers.heard();
      }
      if (received.text.length >= MAX_ANSWER_LENGTH) {
        return answered({ kind: 'end', finish: 'length' }, soFar(), call.prompt);
      }
    }
    return { kind: 'failed', error: cutOff(), ...soFar() };
  } catch (error) {
    if (refusal !== undefined) return { kind: 'aborted', ...refusal, ...soFar() };
    if (error instanceof ModelError && error !== call.signal.reason) return { kind: 'failed', error, ...soFar() };
    // A provider may throw something of its own for an abort.
    if (stop.signal.aborted && stop.signal.reason === timeOut) return { kind: 'failed', error: timeOut!, ...soFar() };
    if (stop.signal.aborted) return { kind: 'aborted', reason: stop.signal.reason, ...soFar() };
    throw error;
  } finally {
    timers.clear();
    call.signal.removeEventListener('abort', forward);
  }
}

function answered(
  end: Extract<Piece, { kind: 'end' }>,
  soFar: { readonly text: string; readonly usage: CountedUsage; readonly sent: boolean },
  prompt: string,
): ModelRun {
  const { finish, usage, cached = false } = end;
  const counted =
    usage === undefined ? countUsage(prompt, soFar.usage.completionTokens, true) : { ...usage, estimated: false };
  return { kind: 'answered', finish, cached, text: soFar.text, sent: soFar.sent, usage: counted };
}

/** The prompt is paid from the moment the model begins to answer; a call that brought nothing is not counted as used. */
function countUsage(prompt: string, completionTokens: number, begun: boolean): CountedUsage {
  return { promptTokens: begun ? estimatePromptTokens(prompt) : 0, completionTokens, estimated: true };
}

function timedOut(message: string, sent: boolean): ModelError {
  return new ModelError({ kind: sent ? 'unknown' : 'retryable', code: 'upstream_timeout', message });
}

function startTimers(timeoutMs: number, end: (message: string) => void) {
  const silenceMs = Math.ceil(timeoutMs / 3);
  let paused = false;
  const whole = setTimeout(() => end(`The model did not finish within ${timeoutMs} ms.`), timeoutMs);
  const silence = setTimeout(() => {
    if (paused) silence.refresh();
    else end(`The model was silent for ${silenceMs} ms.`);
  }, silenceMs);
  return {
    heard() {
      paused = false;
      silence.refresh();
    },
    pause() {
      paused = true;
    },
    clear() {
      clearTimeout(whole);
      clearTimeout(silence);
    },
  };
}
