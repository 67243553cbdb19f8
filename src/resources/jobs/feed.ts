import { eventBlock, isTerminal } from './event-data.ts';
import type { EventPage, JobRef } from './event-store.ts';
import { type Channel, createFeedReader, type FeedReader } from './feed-reader.ts';

/** Reads a page of a job's events behind a number. */
export type ReadEvents = (job: JobRef, after: number) => Promise<EventPage>;

/** The events of the jobs that somebody reads in this process. */
export type JobFeed = {
  open(job: JobRef, after: number): FeedReader;
  /** A job has new events. `id` as hex. */
  notice(id: string): void;
  /** The job has events up to this number. */
  noticeUpTo(job: JobRef, lastSeq: number): void;
  /** Whatever is read may have new events. */
  noticeAll(): void;
  /** Jobs that are read now. */
  jobs(): readonly JobRef[];
};

/** Events kept in memory for the readers at the front, in UTF-16 units a job; who falls behind reads the database again. */
const maxKept = 262_144;

/** A feed over `read`. Readers at the front of a job share each read, so 200 of them cost what one does. */
export function createJobFeed(read: ReadEvents): JobFeed {
  const channels = new Map<string, Channel>();

  const readNext = async (channel: Channel) => {
    // Before the read: what is told during it may not be in it.
    channel.isStale = false;
    try {
      const page = await read(channel.job, channel.readUpTo);
      for (const event of page.events) keep(channel, event.seq, eventBlock(event), isTerminal(event.event));
      channel.isStale ||= page.hasMore;
      channel.isDeleted = page.isDeleted;
    } catch (error) {
      channel.isStale = true;
      throw error;
    } finally {
      channel.reading = undefined;
    }
    // Not after a failure: those who wait for the database to come back would wake one another without end.
    wakeAll(channel);
  };
  const makeStale = (channel: Channel | undefined) => {
    if (channel === undefined) return;
    channel.isStale = true;
    wakeAll(channel);
  };

  return {
    open(job, after) {
      const name = nameOf(job);
      const channel = channels.get(name) ?? newChannel(job, after);
      channels.set(name, channel);
      channel.readers += 1;
      return createFeedReader(channel, after, {
        readNext() {
          channel.reading ??= readNext(channel);
          return channel.reading;
        },
        readBehind: (from) => read(job, from),
        onClose() {
          channel.readers -= 1;
          if (channel.readers === 0) channels.delete(name);
        },
      });
    },
    notice: (id) => makeStale(channels.get(id)),
    noticeUpTo(job, lastSeq) {
      const channel = channels.get(nameOf(job));
      if (channel !== undefined && channel.readUpTo < lastSeq) makeStale(channel);
    },
    noticeAll() {
      for (const channel of channels.values()) makeStale(channel);
    },
    jobs: () => [...channels.values()].map((channel) => channel.job),
  };
}

/** Ids are unique among all tenants, and who opens a feed was checked before. */
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

function keep(channel: Channel, seq: number, block: string, terminal: boolean): void {
  channel.kept.push({ seq, block, isTerminal: terminal });
  channel.keptLength += block.length;
  channel.readUpTo = seq;
  while (channel.keptLength > maxKept && channel.kept.length > 1) {
    channel.keptLength -= channel.kept.shift()?.block.length ?? 0;
  }
}

function wakeAll(channel: Channel): void {
  for (const proceed of channel.waiting) proceed();
}
