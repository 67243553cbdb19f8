import { eventBlock, isTerminal } from './event-data.ts';
import type { EventPage, JobRef } from './event-store.ts';

/** Reads a page of a job's events behind a number. */
export type ReadEvents = (job: JobRef, after: number) => Promise<EventPage>;

/** One reader's place in a job's events. It keeps a number and nothing else, however slow it is. */
export type FeedReader = {
  /**
   * The next events as blocks of the stream, at once or as soon as there are some. `quiet`: nothing for `quietMs`, or the
   * database is away. `end`: the terminal event was delivered, or the events are deleted.
   */
  next(quietMs: number, signal: AbortSignal): Promise<readonly string[] | 'quiet' | 'end'>;
  close(): void;
};

/** The events of the jobs that somebody reads in this process. */
export type JobFeed = {
  open(job: JobRef, after: number): FeedReader;
  /** A job has new events. `id` as hex. */
  notice(id: string): void;
  /** Whatever is read may have new events. */
  noticeAll(): void;
  /** Jobs that are read now. */
  jobs(): readonly JobRef[];
  /** The job has events up to this number. */
  noticeUpTo(job: JobRef, lastSeq: number): void;
};

/** Events kept in memory for the readers at the front, in UTF-16 units a job; who falls behind reads the database again. */
const maxKept = 262_144;
/** Blocks handed over at a time, in UTF-16 units: what one slow reader can hold up. */
const maxHanded = 32_768;

type Kept = { readonly seq: number; readonly block: string; readonly isTerminal: boolean };

/** The shared reading of one job: readers at the front share each read, so 200 of them cost what one does. */
type Channel = {
  readonly job: JobRef;
  /** In order and without gaps; the last one is `readUpTo`. */
  readonly kept: Kept[];
  keptLength: number;
  readUpTo: number;
  /** There may be more than has been read. */
  isStale: boolean;
  isDeleted: boolean;
  reading: Promise<void> | undefined;
  readers: number;
  readonly waiting: Set<() => void>;
};

/** A feed over `read`. */
export function createJobFeed(read: ReadEvents): JobFeed {
  const channels = new Map<string, Channel>();

  const readOnce = async (channel: Channel) => {
    // Before the read: what is told during it may not be in it.
    channel.isStale = false;
    try {
      const page = await read(channel.job, channel.readUpTo);
      for (const event of page.events) {
        const block = eventBlock(event);
        channel.kept.push({ seq: event.seq, block, isTerminal: isTerminal(event.event) });
        channel.keptLength += block.length;
        channel.readUpTo = event.seq;
      }
      while (channel.keptLength > maxKept && channel.kept.length > 1) {
        channel.keptLength -= channel.kept.shift()?.block.length ?? 0;
      }
      if (page.hasMore) channel.isStale = true;
      channel.isDeleted = page.isDeleted;
    } catch (error) {
      channel.isStale = true;
      throw error;
    } finally {
      channel.reading = undefined;
      for (const proceed of channel.waiting) proceed();
    }
  };

  return {
    open(job, after) {
      const name = nameOf(job);
      const channel = channels.get(name) ?? newChannel(job, after);
      channels.set(name, channel);
      channel.readers += 1;
      return createReader(channel, after, {
        readOnce,
        readBehind: (from) => read(job, from),
        close() {
          channel.readers -= 1;
          if (channel.readers === 0) channels.delete(name);
        },
      });
    },
    notice(id) {
      const channel = channels.get(id);
      if (channel !== undefined) makeStale(channel);
    },
    noticeAll() {
      for (const channel of channels.values()) makeStale(channel);
    },
    jobs: () => [...channels.values()].map((channel) => channel.job),
    noticeUpTo(job, lastSeq) {
      const channel = channels.get(nameOf(job));
      if (channel !== undefined && channel.readUpTo < lastSeq) makeStale(channel);
    },
  };
}

/** Ids are unique among all tenants, and who reads has been checked before. */
function nameOf(job: JobRef): string {
  return job.id.replaceAll('-', '');
}

function newChannel(job: JobRef, after: number): Channel {
  return {
    job,
    kept: [],
    keptLength: 0,
    readUpTo: after,
    isStale: true,
    isDeleted: false,
    reading: undefined,
    readers: 0,
    waiting: new Set(),
  };
}

function makeStale(channel: Channel): void {
  channel.isStale = true;
  for (const proceed of channel.waiting) proceed();
}

type Hands = {
  readOnce(channel: Channel): Promise<void>;
  readBehind(after: number): Promise<EventPage>;
  close(): void;
};

function createReader(channel: Channel, after: number, hands: Hands): FeedReader {
  let at = after;
  let hasEnded = false;
  let isClosed = false;

  const hand = (events: readonly Kept[]): readonly string[] => {
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
  /** What is in memory behind the reader's place; undefined: it has fallen behind what is kept. */
  const inMemory = (): readonly Kept[] | undefined => {
    const first = channel.kept[0]?.seq ?? channel.readUpTo + 1;
    return at + 1 < first ? undefined : channel.kept.slice(at + 1 - first, at + 1 - first + maxHandedEvents);
  };
  const readBehind = async (): Promise<readonly Kept[]> => {
    const { events } = await hands.readBehind(at);
    return events.map((event) => ({
      seq: event.seq,
      block: eventBlock(event),
      isTerminal: isTerminal(event.event),
    }));
  };

  return {
    async next(quietMs, signal) {
      const deadline = performance.now() + quietMs;
      while (!hasEnded && !signal.aborted) {
        try {
          const events = inMemory() ?? (await readBehind());
          if (events.length > 0) return hand(events);
          if (channel.isDeleted || at < channel.readUpTo) return 'end';
          if (channel.isStale) {
            channel.reading ??= hands.readOnce(channel);
            await channel.reading;
            continue;
          }
        } catch {
          // The database is away: the reader stays, and asks again after a while.
          await pause(channel, Math.min(quietMs, awayMs), signal);
          return 'quiet';
        }
        const leftMs = deadline - performance.now();
        if (leftMs <= 0) return 'quiet';
        await pause(channel, leftMs, signal);
      }
      return 'end';
    },
    close() {
      if (!isClosed) hands.close();
      isClosed = true;
    },
  };
}

/** Events looked at a time. */
const maxHandedEvents = 256;
/** Before a database that is away is asked again, in milliseconds. */
const awayMs = 1_000;

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
