import { Agent, get, type IncomingMessage } from 'node:http';
import { createEventParser } from '../../src/protocol/event-parser.ts';
import { machineMs, timesIn } from './clock-model.ts';

/** What one reader of a job's stream saw. */
export type Seen = {
  readonly text: string;
  /** The stream's last event; undefined: it broke off before one. */
  readonly end: string | undefined;
};

/** A reader that is connected. */
export type Reader = {
  /** From the request to the first byte of the stream. */
  readonly firstByteMs: number;
  /** Settles when the stream ends. */
  readonly seen: Promise<Seen>;
};

const terminal = new Set(['done', 'error', 'cancelled']);

/** Reads a job's stream over a connection of its own; `onLag` gets each token's way from the model to here, in milliseconds. */
export async function openReader(
  url: string,
  headers: Readonly<Record<string, string>>,
  onLag: (ms: number) => void,
): Promise<Reader> {
  const startedMs = performance.now();
  const agent = new Agent({ keepAlive: false });
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url, { agent, headers: { ...headers } }, resolve).on('error', reject);
  });
  if (response.statusCode !== 200) {
    response.resume();
    throw new Error(`a stream was answered with ${response.statusCode}`);
  }
  const parser = createEventParser();
  let text = '';
  let end: string | undefined;
  const firstByte = new Promise<number>((resolve) => {
    response.once('data', () => resolve(performance.now() - startedMs));
    response.once('close', () => resolve(Number.NaN));
  });
  response.on('data', (chunk: Uint8Array) => {
    const nowMs = machineMs();
    for (const { event, data } of parser.push(chunk)) {
      if (event === 'delta') {
        const piece = (JSON.parse(data) as { text: string }).text;
        for (const saidMs of timesIn(piece)) onLag(nowMs - saidMs);
        text += piece;
      } else if (terminal.has(event)) end = event;
    }
  });
  const seen = new Promise<Seen>((resolve) => {
    response.on('error', () => {});
    response.once('close', () => resolve({ text, end }));
  });
  return { firstByteMs: await firstByte, seen };
}
