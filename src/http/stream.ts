import type { ServerResponse } from 'node:http';

/** Where a streamed body is written. `write` resolves when the reader has room again, so a slow reader slows only itself. */
export type StreamOut = {
  write(chunk: string): Promise<void>;
  /** Aborts when the reader is gone or the server stops. */
  readonly signal: AbortSignal;
};

/** Writes a streamed body. */
export type StreamBody = (out: StreamOut) => Promise<void>;

/** Answers 200 with headers at once, then the body as `produce` writes it. To a HEAD the headers alone. */
export async function streamReply(
  res: ServerResponse,
  headers: Readonly<Record<string, string>>,
  produce: StreamBody,
  isHead: boolean,
  stopping: AbortSignal,
): Promise<void> {
  res.writeHead(200, headers);
  if (isHead) {
    res.end();
    return;
  }
  res.flushHeaders();
  const gone = new AbortController();
  const leave = () => gone.abort();
  res.once('close', leave);
  stopping.addEventListener('abort', leave);
  if (stopping.aborted || res.destroyed) leave();
  try {
    await produce({ signal: gone.signal, write: (chunk) => writeChunk(res, chunk, gone.signal) });
  } finally {
    stopping.removeEventListener('abort', leave);
    res.end();
  }
}

function writeChunk(res: ServerResponse, chunk: string, gone: AbortSignal): Promise<void> {
  if (gone.aborted || res.write(chunk)) return Promise.resolve();
  return new Promise((resolve) => {
    const proceed = () => {
      res.off('drain', proceed).off('close', proceed);
      gone.removeEventListener('abort', proceed);
      resolve();
    };
    res.on('drain', proceed).on('close', proceed);
    gone.addEventListener('abort', proceed);
  });
}
