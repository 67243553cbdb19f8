/** What the benchmark asks of the server process beside HTTP, over Node's IPC channel. */
export type Ask =
  /** CPU spent since the start, and memory. */
  | { readonly kind: 'usage' }
  /** Sweeps keys without a pause, or stops. */
  | { readonly kind: 'sweep'; readonly on: boolean }
  /** Lets workers run queued jobs: the server's own, or those that write a row a token. */
  | { readonly kind: 'workers'; readonly writer: 'batched' | 'row_per_token' | 'none' }
  /** What the model has been asked for so far. */
  | { readonly kind: 'model' };

/** What it answers. */
export type Answers = {
  readonly usage: { readonly cpuMs: number; readonly rssBytes: number };
  readonly sweep: { readonly swept: number };
  readonly workers: { readonly ok: true };
  readonly model: { readonly calls: number; readonly completionTokens: number };
};

/** Server → benchmark: it listens; or the answer to an ask. */
export type FromServer =
  | { readonly kind: 'listening'; readonly url: string; readonly bareUrl: string }
  | { readonly kind: 'answer'; readonly id: number; readonly answer: unknown };

/** Benchmark → server. */
export type ToServer = { readonly id: number; readonly ask: Ask };
