import { type Address, addressesOf } from './dial.ts';
import { openSession, type Session } from './session.ts';

/** Pauses before a lost session is replaced, in milliseconds: doubled from the first to the longest, each with jitter. */
const firstPauseMs = 100;
const longestPauseMs = 5_000;

/** What is listened to, and who is told. */
export type ListenerOptions = {
  readonly url: string;
  /** Channel (a plain lower-case name) → what gets its payloads. */
  readonly channels: Readonly<Record<string, (payload: string) => void>>;
  /** Called whenever it begins to listen: what was notified before may have been missed. */
  readonly onListening: () => void;
  readonly onError: (error: unknown) => void;
};

/** One connection beside the pool that waits for NOTIFY. */
export type Listener = {
  /** False while the connection is away: then nobody is told of anything. */
  readonly isListening: () => boolean;
  stop(): Promise<void>;
};

/** Listens on a session of its own, and on a new one whenever that is lost. Not behind PgBouncer in transaction mode: it listens for nobody. */
export function startListener(options: ListenerOptions): Listener {
  const addresses = addressesOf(options.url);
  const onNotify = (channel: string, payload: string) => options.channels[channel]?.(payload);
  const listen = Object.keys(options.channels)
    .map((channel) => `listen ${channel}`)
    .join('; ');
  let session: Session | undefined;
  let isListening = false;
  let isStopped = false;
  let timer: NodeJS.Timeout | undefined;
  let failures = 0;

  const connect = async () => {
    const address = addresses[failures % addresses.length] as Address;
    const fresh = openSession({ url: options.url, prepare: false, silenceMs: 0, address }, onNotify);
    session = fresh;
    fresh.onLost = (cause) => replace(fresh, cause);
    try {
      await fresh.sql.unsafe(listen).simple();
      if (session !== fresh || fresh.lost !== undefined) return;
      failures = 0;
      isListening = true;
      options.onListening();
    } catch (error) {
      replace(fresh, error);
    }
  };
  const replace = (lost: Session, cause: unknown) => {
    if (session !== lost || isStopped) return;
    session = undefined;
    isListening = false;
    lost.cut();
    if (failures === 0) options.onError(cause);
    const pauseMs = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(failures, 10));
    failures += 1;
    timer = setTimeout(() => void connect(), pauseMs * (0.5 + Math.random() / 2));
    timer.unref();
  };

  void connect();
  return {
    isListening: () => isListening,
    async stop() {
      isStopped = true;
      isListening = false;
      clearTimeout(timer);
      await session?.end();
    },
  };
}
