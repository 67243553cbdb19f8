/** A text waits for more of it at most so long before it becomes an event, in milliseconds. */
const everyMs = 50;
/** A text of so many UTF-16 units becomes an event at once. */
const fullLength = 512;
/** Text that may wait for a slow database, in UTF-16 units; beyond it the model is read no further. */
const maxWaiting = 65_536;

/** Collects what a model says into batches, one batch being written at a time. */
export type DeltaWriter = {
  /** Takes a text; resolves when there is room for the next. Rejects once a batch could not be written. */
  push(text: string, tokens: number): Promise<void>;
  /** Writes what is left; resolves when everything is written. */
  flush(): Promise<void>;
  /** Drops what is left; a batch that is being written ends by itself. */
  discard(): void;
};

/** A writer over `write`, which gets every text once and in order. */
export function createDeltaWriter(write: (text: string, tokens: number) => Promise<void>): DeltaWriter {
  let text = '';
  let tokens = 0;
  let timer: NodeJS.Timeout | undefined;
  let isDue = false;
  let writing: Promise<void> | undefined;
  let failure: { readonly error: unknown } | undefined;

  const take = () => {
    const batch = { text, tokens };
    discard();
    return batch;
  };
  const discard = () => {
    clearTimeout(timer);
    timer = undefined;
    isDue = false;
    text = '';
    tokens = 0;
  };
  const writeBatch = async () => {
    const batch = take();
    try {
      await write(batch.text, batch.tokens);
    } catch (error) {
      failure = { error };
    }
    writing = undefined;
    if (isDue) begin();
  };
  const begin = () => {
    isDue = true;
    if (writing === undefined && failure === undefined && text !== '') writing = writeBatch();
  };
  const check = () => {
    if (failure !== undefined) throw failure.error;
  };

  return {
    async push(more, moreTokens) {
      check();
      text += more;
      tokens += moreTokens;
      if (text.length >= fullLength) begin();
      else timer ??= setTimeout(begin, everyMs);
      if (text.length >= maxWaiting) await writing;
      check();
    },
    async flush() {
      // Of what came during one batch the next one has begun by itself.
      while (failure === undefined && (text !== '' || writing !== undefined)) {
        begin();
        await writing;
      }
      check();
    },
    discard,
  };
}
