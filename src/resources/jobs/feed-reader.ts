import { eventBlock, isTerminal } from './event-data.ts';
import type { EventPage, JobRef } from './event-store.ts';

/** An event as it goes over the wire. */
type Kept = { readonly seq: number; readonly block: string; readonly isTerminal: boolean };

/** The shared reading of one job. */
export type Channel = {
  readonly job: JobRef;
  /** The newest events that were read, in order and without gaps. */
  readonly kept: Kept[];
  /** Their length in UTF-16 units. */
  keptLength: number;
  readUpTo: number;
  /** There may be more than has been read. */
  isStale: boolean;
  isDeleted: boolean;
  reading: Promise<void> | undefined;
  readers: number;
  /** Readers that have seen everything. */
  readonly waiting: Set<() => void>;
};

/** One reader's place in a job's events. It keeps a number and nothing else, however slow it is. */
export type FeedReader = {
  /**
   * The next events as blocks of the stream, at once or as soon as there are some. `quiet`: nothing for `quietMs`, or the
   * database is away. `end`: the terminal event was delivered, the events are deleted, or the signal has aborted.
   */
  next(quietMs: number, signal: AbortSignal): Promise<readonly string[] | 'quiet' | 'end'>;
  close(): void;
};

type Hands = {
  /** Reads the next page for all readers at the front. */
  readNext(): Promise<void>;
  /** Reads a page for this reader alone. */
  readBehind(after: number): Promise<EventPage>;
  onClose(): void;
};

/** Blocks handed over at a time, in UTF-16 units, give or take one: what one slow reader can hold up. */
const maxHanded = 32_768;
/** Before a database that is away is asked again, in milliseconds. */
const awayMs = 1_000;

/** A reader of the channel behind the number `after`. */
export function createFeedReader(channel: Channel, after: number, hands: Hands): FeedReader {
  let at = after;
  let hasEnded = false;

  const hand = (events: Iterable<Kept>): readonly string[] => {
    const blocks: string[] = [];
    let length = 0;
    for (const event of events) {
      blocks.push(event.block);
      length += event.block.length;
      at = event.seq;
      hasEnded = event.isTerminal;
      if (length >= maxHanded) break;
    }
    return blocks;
  };
  /** Undefined: the reader has fallen behind what is kept. Handed over in one go: while anything is awaited, `kept` moves on. */
  const fromMemory = (): readonly string[] | undefined => {
    const first = channel.kept[0]?.seq ?? channel.readUpTo + 1;
    return at + 1 >= first ? hand(itemsFrom(channel.kept, at + 1 - first)) : undefined;
  };
  const fromDatabase = async (): Promise<readonly string[]> => {
    const { events } = await hands.readBehind(at);
    return hand(events.map((event) => ({ ...event, block: eventBlock(event), isTerminal: isTerminal(event.event) })));
  };

  return {
    async next(quietMs, signal) {
      const deadline = performance.now() + quietMs;
      while (!hasEnded && !signal.aborted) {
        try {
          const blocks = fromMemory() ?? (await fromDatabase());
          if (blocks.length > 0) return blocks;
          if (channel.isDeleted || at < channel.readUpTo) return 'end';
          if (channel.isStale) {
            await hands.readNext();
            continue;
          }
        } catch {
          // The reader stays: an event source that is answered with an error never comes back.
          await pause(channel, Math.min(quietMs, awayMs), signal);
          return 'quiet';
        }
        const leftMs = deadline - performance.now();
        if (leftMs <= 0) return 'quiet';
        await pause(channel, leftMs, signal);
      }
      return 'end';
    },
    close: hands.onClose,
  };
}

function* itemsFrom<T>(items: readonly T[], index: number): Generator<T> {
  for (let i = index; i < items.length; i += 1) yield items[i] as T;
}

/** Until something is told of the channel, the time is up or the signal aborts. */
function pause(channel: Channel, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const proceed = () => {
      clearTimeout(timer);
      channel.waiting.delete(proceed);
      signal.removeEventListener('abort', proceed);
      resolve();
    };
    const timer = setTimeout(proceed, ms);
    channel.waiting.add(proceed);
    signal.addEventListener('abort', proceed);
  });
}
